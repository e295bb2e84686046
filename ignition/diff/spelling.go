package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
)

// rewritten is the effect of a file or unit that means the same to a node and that its
// MachineConfigs spell otherwise: to the machine config daemon it has changed (hard case
// 56).
const rewritten = "written otherwise, same contents"

// compareSpelling finds the files and units that are only written otherwise: not those
// among changes.
func compareSpelling(a, b nodeState, release string, changes []Change) []Change {
	known := map[string]bool{}
	for _, c := range changes {
		known[c.Name] = true
	}
	var out []Change
	for _, name := range keys(a.spelled, b.spelled) {
		before, after := a.spelled[name], b.spelled[name]
		if before == nil || after == nil || known[name] {
			continue
		}
		c := Change{Kind: kindUnit, Name: name, What: rewritten, From: b.units[name].from}
		if f, file := b.files[name]; file {
			c.Kind, c.From = kindFile, f.from
		}
		if c.Fields = spelledOtherwise(before, after, release); len(c.Fields) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// settingOrder is the order of units.
const settingOrder = "systemd.units, their order"

// compareOrder finds units that come in another order, which is a change to machine config
// daemons before 4.17: they compare units as one list (newMachineConfigDiff,
// calculatePostConfigChangeAction). A MachineConfig that is renamed may do that.
func compareOrder(a, b nodeState, release string) []Change {
	if release == "" || assets.AtLeast(release, "4.17") {
		return nil
	}
	both := func(order []string) []string {
		return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return a.units[name].from == "" || b.units[name].from == "" })
	}
	was, is := both(a.order), both(b.order)
	if slices.Equal(was, is) {
		return nil
	}
	return []Change{{Kind: kindSetting, Name: settingOrder, What: changed, Fields: []Field{{Path: settingOrder, Old: strings.Join(was, " "), New: strings.Join(is, " ")}}}}
}

func spelledOtherwise(before, after ignition.Spelling, release string) (out []Field) {
	before, after = asRendered(before, release), asRendered(after, release)
	for _, name := range keys(before, after) {
		if before[name] == after[name] {
			continue
		}
		was, shown := before.Shown(name)
		is, _ := after.Shown(name)
		switch {
		case name == "mask" && (was == "true" || is == "true"):
			// a change, which compareStates has found
		case shown:
			out = append(out, Field{Path: name, Old: was, New: is})
		default:
			out = append(out, Field{Path: name, What: changed, New: "(another spelling)"})
		}
	}
	return out
}

// asRendered is a spelling as it is in the MachineConfig that the operator renders
// (MergeMachineConfigs): files are overwritten unless they say else, and from 4.20 on an
// empty compression is none (ignitionMergeUnsetFilesDefaultCompression).
func asRendered(s ignition.Spelling, release string) ignition.Spelling {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(name, value string) bool {
		return name == "overwrite" && value == "true" ||
			name == "contents.compression" && value == `""` && assets.AtLeast(release, "4.20")
	})
	return s
}
