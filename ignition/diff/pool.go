package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
)

// nodeState is the merged content of all MachineConfigs of a pool.
type nodeState struct {
	files    map[string]nodeFile
	units    map[string]nodeUnit
	settings map[string]string
	// unit names in the order of the rendered MachineConfig
	order []string
	// spelled has files and units as the operator writes them into the rendered MachineConfig;
	// nil for one from a MachineConfig in Ignition 2.
	spelled map[string]ignition.Spelling
}

type nodeFile struct {
	ignition.DecodedFile
	from string // MachineConfig
}

type nodeUnit struct {
	ignition.Unit
	from string
}

// merge merges MachineConfigs as the operator does: the last file of a path wins, units and
// their drop-ins are merged by name, and settings add up or the last one wins.
func merge(docs []ignition.Document) nodeState {
	s := nodeState{files: map[string]nodeFile{}, units: map[string]nodeUnit{}, settings: map[string]string{}, spelled: map[string]ignition.Spelling{}}
	for _, d := range docs {
		for _, f := range d.Files {
			if old, there := s.files[f.Path]; f.Append && there {
				f.Contents = append(slices.Clone(old.Contents), f.Contents...)
				f.Mode, f.Remote, f.Append = old.Mode, old.Remote, old.Append
			}
			if _, own := d.Spelling[f.Path]["mode"]; !own && d.Spelling != nil && s.files[f.Path].from != "" {
				f.Mode = s.files[f.Path].Mode // not given: the earlier one stays
			}
			s.files[f.Path] = nodeFile{f, d.Name}
			s.spell(f.Path, d)
		}
		for _, u := range d.Units {
			if _, there := s.units[u.Name]; !there {
				s.order = append(s.order, u.Name)
			}
			s.units[u.Name] = nodeUnit{mergeUnit(s.units[u.Name].Unit, u), d.Name}
			s.spell(u.Name, d)
		}
		for name, value := range d.Settings {
			switch name {
			case ignition.SettingKernelType, ignition.SettingOSImage, ignition.SettingExtensionsImage, ignition.SettingFIPS:
				s.settings[name] = value
			default:
				s.settings[name] = strings.TrimSpace(s.settings[name] + " " + value)
			}
		}
	}
	return s
}

// spell merges the spelling of a file or unit field by field, as Ignition does.
func (s nodeState) spell(name string, d ignition.Document) {
	before, there := s.spelled[name]
	now := d.Spelling[name]
	if there && before == nil || now == nil {
		s.spelled[name] = nil
		return
	}
	merged := ignition.Spelling{}
	maps.Copy(merged, before)
	maps.Copy(merged, now)
	s.spelled[name] = merged
}

func mergeUnit(old, u ignition.Unit) ignition.Unit {
	old.Name = u.Name
	old.Contents = cmp.Or(u.Contents, old.Contents)
	old.Enabled = cmp.Or(u.Enabled, old.Enabled)
	old.Dropins = slices.Clone(old.Dropins)
	for _, d := range u.Dropins {
		i := slices.IndexFunc(old.Dropins, func(x ignition.Dropin) bool { return x.Name == d.Name })
		if i < 0 {
			old.Dropins = append(old.Dropins, d)
		} else {
			old.Dropins[i] = d
		}
	}
	return old
}

// attributes describes the unusual attributes of a file.
func (f nodeFile) attributes() string {
	about := fmt.Sprintf("mode %04o", f.Mode)
	if f.Remote != "" {
		about += ", from " + f.Remote
	}
	if f.Append {
		about += ", appended"
	}
	if f.Problem != "" {
		about += ", " + f.Problem
	}
	return about
}

func (u nodeUnit) text() string {
	var b strings.Builder
	switch {
	case u.Enabled == nil:
	case *u.Enabled:
		b.WriteString("enabled\n")
	default:
		b.WriteString("disabled\n")
	}
	b.WriteString(u.Contents)
	for _, d := range u.Dropins {
		fmt.Fprintf(&b, "drop-in %s\n%s", d.Name, d.Contents)
	}
	return b.String()
}

// pools returns the pools of both sides: master, arbiter, worker, then custom ones.
func pools(sides ...[]ignition.Document) []string {
	var out []string
	for _, docs := range sides {
		for _, d := range docs {
			if d.Role != "" {
				out = append(out, d.Role)
			}
		}
	}
	usual := []string{v1alpha1.RoleBootstrap, v1alpha1.RoleMaster, v1alpha1.RoleArbiter, v1alpha1.RoleWorker}
	rank := func(s string) int {
		if i := slices.Index(usual, s); i >= 0 {
			return i
		}
		return len(usual)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	return slices.Compact(out)
}
