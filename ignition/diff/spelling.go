package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
)

// rewritten marks a file or unit that MachineConfigs spell differently with the same meaning:
// to the machine config daemon it has changed (hard case 56).
const rewritten = "written otherwise, same contents"

// compareSpelling returns the files and units that are only spelled differently, without those
// in changes.
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

const settingOrder = "systemd.units, their order"

// compareOrder returns the change of the units' order, which counts for machine config daemons
// before 4.17: they compare units as one list (newMachineConfigDiff,
// calculatePostConfigChangeAction). A renamed MachineConfig may cause it.
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
			// a change that compareStates found
		case shown:
			out = append(out, Field{Path: name, Old: was, New: is})
		default:
			out = append(out, Field{Path: name, What: changed, New: "(another spelling)"})
		}
	}
	return out
}

// asRendered returns a spelling as in the MachineConfig that the operator renders
// (MergeMachineConfigs): files are overwritten by default, and from 4.20 on an empty
// compression is dropped (ignitionMergeUnsetFilesDefaultCompression).
func asRendered(s ignition.Spelling, release string) ignition.Spelling {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(name, value string) bool {
		return name == "overwrite" && value == "true" ||
			name == "contents.compression" && value == `""` && assets.AtLeast(release, "4.20")
	})
	return s
}
