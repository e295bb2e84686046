package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
)

// nodeState is what the nodes of a pool get of all its MachineConfigs.
type nodeState struct {
	files    map[string]nodeFile
	units    map[string]nodeUnit
	settings map[string]string
}

type nodeFile struct {
	ignition.DecodedFile
	from string // MachineConfig
}

type nodeUnit struct {
	ignition.Unit
	from string
}

// inPool gives the MachineConfigs of a pool in the order in which the operator
// merges them, that of their names. Nodes of a custom pool get the worker's too.
func inPool(docs []ignition.Document, pool string) []ignition.Document {
	var out []ignition.Document
	for _, d := range docs {
		if d.Role == pool || d.Role == v1alpha1.RoleWorker && custom(pool) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b ignition.Document) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func custom(pool string) bool {
	switch pool {
	case v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter, v1alpha1.RoleBootstrap:
		return false
	}
	return true
}

// merge puts MachineConfigs together as the operator does: of files with one
// path the last one counts, units and their drop-ins are merged by name, and
// settings add up or the last one counts.
func merge(docs []ignition.Document) nodeState {
	s := nodeState{map[string]nodeFile{}, map[string]nodeUnit{}, map[string]string{}}
	for _, d := range docs {
		for _, f := range d.Files {
			if old, there := s.files[f.Path]; f.Append && there {
				f.Contents = append(slices.Clone(old.Contents), f.Contents...)
				f.Mode, f.Remote, f.Append = old.Mode, old.Remote, old.Append
			}
			s.files[f.Path] = nodeFile{f, d.Name}
		}
		for _, u := range d.Units {
			s.units[u.Name] = nodeUnit{mergeUnit(s.units[u.Name].Unit, u), d.Name}
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

// describe gives a file as text to compare: what stands before its contents
// when that is not usual, and the contents.
func (f nodeFile) about() string {
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

// pools are those of two sides: master, arbiter, worker, then custom ones.
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
