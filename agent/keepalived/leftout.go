package keepalived

import (
	"slices"

	"github.com/vipgen/vipgen/agent/state"
)

// whyLeftOut is why a node takes no part that the mode file names.
const whyLeftOut = "the mode file leaves it out (without)"

// stayOut tells the others that this node takes no part. What they run by the time that
// it does again it finds out as if it started then.
func (j *Job) stayOut(t target) {
	e := &j.electing
	e.running, e.shift, e.agreement, e.moments = nil, nil, agreement{}, nil
	e.status = &state.Migration{Target: t.settings, WaitsFor: "this node: " + whyLeftOut}
	j.wire.follow(nil, nil)
	j.sayWait(e.status.WaitsFor)
	if j.Source.Nodes != nil {
		j.Source.Nodes.Announce(announcement{Running: "nothing", Why: whyLeftOut}.encode())
	}
}

// without are the nodes but for those of that name.
func without(list []elector, names []string) []elector {
	return slices.DeleteFunc(list, func(n elector) bool { return slices.Contains(names, n.name) })
}
