package migration

import (
	"fmt"
	"time"

	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// How the nodes agree on an instant. An announcement of a node takes up to three seconds to reach
// the others (agent/nodes), and one more for a large cluster (announcementTime).
const (
	// leadTime is how far ahead an instant is that nobody planned.
	leadTime = 20 * time.Second
	// grid is what such instants are multiples of, so that nodes that look within
	// some seconds come to the same.
	grid = 10 * time.Second
	// marginTime is how long before the instant all must have agreed: twice what an
	// announcement takes, so that one that is withdrawn is heard as well.
	marginTime = 8 * time.Second
	// lateTime is how long after the instant a node may still move by its clock.
	lateTime = 2 * time.Second
	// mostMissed doubles leadTime so often.
	mostMissed = 2
	// announcementTime is by how much an announcement is later for each node of the cluster.
	announcementTime = 5 * time.Millisecond
)

// view is what a node knows when it looks at whether to move.
type view struct {
	// now is by the wall clock, up by the monotonic one since some moment.
	now             time.Time
	up              time.Duration
	self            string
	running, target v1alpha1.VRRPSettings
	planned         time.Time // the instant of the mode file; zero for none
	unready         string    // why this node is not ready; empty if it is
	openShift       bool      // the machine config operator has a say
	fresh           bool      // an API server vouches for nodes
	nodes           []Node    // all of the cluster, this one included, by name
}

// Node is a node of the cluster as its fellows see it.
type Node struct {
	Name   string
	Update nodes.Update
	// Holds says that it can hold a VIP.
	Holds bool
	// Announced is the zero value if it says nothing.
	Announced Announcement
}

// verdict is what comes of a view.
type verdict struct {
	// settled says that there is nothing to move to.
	settled bool
	// say is what the node is to tell the others.
	say Announcement
	// waits says what for; empty once all have agreed.
	waits string
	// at is the instant that this node proposes, agreed that all have agreed to
	// it, and left how long there is to it, by the monotonic clock.
	at     time.Time
	agreed bool
	left   time.Duration
	// late says that most others have moved, so that there is nothing to agree on.
	late bool
}

// agreement is how far this node has come to one with the others.
type agreement struct {
	at     time.Time // the instant that it says; zero for none
	agreed bool      // all said so, in time
	// anchor is when at was chosen, anchorUp the same by the monotonic clock. From
	// then on that one counts: a step of the wall clock changes nothing (hard case
	// 27).
	anchor   time.Time
	anchorUp time.Duration
	// missed is how often not all had agreed in time: each time they get twice as
	// long, up to mostMissed.
	missed int
}

// look takes in what is known now.
func (a *agreement) look(v view) verdict {
	out := verdict{say: Announcement{Running: v.running.String()}}
	if understands(v.running, v.target) || v.running == v.target {
		*a = agreement{}
		out.settled, out.say.Ready = true, v.target.String()
		return out
	}
	if v.unready != "" {
		*a = agreement{}
		out.say.Why, out.waits = v.unready, "this node: "+v.unready
		return out
	}
	out.say.Ready = v.target.String()
	now := v.now.Round(0)
	if !a.anchor.IsZero() {
		now = a.anchor.Add(v.up - a.anchorUp)
	}
	if out.waits = v.missing(); out.waits == "" {
		out.late = v.mostMoved()
		out.waits = a.choose(v, now)
	}
	if out.waits != "" {
		*a = agreement{}
		return out
	}
	out.say.At, out.at, out.left = a.at, a.at, a.at.Sub(now)
	switch other := v.otherwise(a.at); {
	case other != "":
		a.agreed = false
		out.waits = other
	case out.left >= v.margin():
		a.agreed = true
	case !a.agreed:
		out.waits = "the next instant: not all had agreed in time"
	}
	out.agreed = a.agreed
	return out
}

// margin is marginTime, as the size of the cluster wants it.
func (v *view) margin() time.Duration {
	return marginTime + time.Duration(len(v.nodes))*announcementTime
}

// movers are the nodes that have to agree: those that can hold a VIP and do not run
// the target already.
func (v *view) movers() (out []Node) {
	for _, n := range v.nodes {
		if n.Holds && n.Announced.Running != v.target.String() {
			out = append(out, n)
		}
	}
	return out
}

// moved is how many of the others run the target.
func (v *view) moved() (there int) {
	for _, n := range v.nodes {
		if n.Holds && n.Name != v.self && n.Announced.Running == v.target.String() {
			there++
		}
	}
	return there
}

// mostMoved says whether most of the others run the target.
func (v *view) mostMoved() bool {
	others := 0
	for _, n := range v.nodes {
		if n.Holds && n.Name != v.self {
			others++
		}
	}
	return 2*v.moved() > others
}

// choose decides on the instant that this node says, or says why there is none.
func (a *agreement) choose(v view, now time.Time) (why string) {
	set := func(at time.Time) {
		if !a.at.Equal(at) {
			a.at, a.agreed = at, false
		}
		if a.anchor.IsZero() {
			a.anchor, a.anchorUp = v.now.Round(0), v.up
		}
	}
	lead := (leadTime + 2*time.Duration(len(v.nodes))*announcementTime) << a.missed
	if !v.planned.IsZero() {
		at := v.planned.UTC().Truncate(time.Second)
		if now.After(at.Add(lateTime)) || !a.agreed && at.Sub(now) < v.margin() {
			return "another planned time: " + at.Format(time.RFC3339) + " passed before all nodes had agreed"
		}
		set(at)
		return ""
	}
	if missed := !a.at.IsZero() && (!a.agreed && a.at.Sub(now) < v.margin() || now.After(a.at.Add(lateTime))); missed || a.at.IsZero() {
		if missed {
			a.missed = min(a.missed+1, mostMissed)
		}
		a.anchor, now = time.Time{}, v.now.Round(0)
		set(now.Add(lead + grid - 1).Truncate(grid).UTC())
	}
	for _, n := range v.movers() {
		switch ahead := n.Announced.At.Sub(now); {
		case n.Name == v.self || !n.Announced.At.After(a.at):
		case ahead > 2*lead+grid:
			return fmt.Sprintf("%s: it plans for %s, which is %v ahead: its clock or this node's is wrong", n.Name, n.Announced.At.Format(time.RFC3339), ahead.Round(time.Second))
		default:
			set(n.Announced.At)
		}
	}
	return ""
}

// otherwise names a node that does not say this instant, or nothing. This one's
// announcement counts when the others can have read it.
func (v *view) otherwise(at time.Time) string {
	var first string
	others := 0
	for _, n := range v.movers() {
		if n.Announced.At.Equal(at) && n.Announced.Ready == v.target.String() {
			continue
		}
		if others++; first == "" {
			first = n.Name
		}
	}
	if others == 0 {
		return ""
	}
	return first + more(others) + " to agree to " + at.Format(time.RFC3339)
}

func more(n int) string {
	if n > 1 {
		return fmt.Sprintf(" and %d more", n-1)
	}
	return ""
}

// missing says what the cluster lacks for a move, or nothing.
func (v *view) missing() string {
	if !v.fresh {
		return "an API server: none vouches for the list of nodes"
	}
	first, others := "", 0
	for i := range v.nodes {
		if why := v.lacks(&v.nodes[i]); why != "" {
			if others++; first == "" {
				first = v.nodes[i].Name + ": " + why
			}
		}
	}
	if others > 1 {
		first += fmt.Sprintf(" (and %d more nodes)", others-1)
	}
	return first
}

// lacks says what a node lacks for a move.
func (v *view) lacks(n *Node) string {
	u := n.Update
	switch {
	case v.openShift && u.CurrentConfig == "":
		return "the machine config operator does not say yet how far it is"
	case u.CurrentConfig != u.DesiredConfig:
		return fmt.Sprintf("its update is not done (%s, not yet %s)", u.CurrentConfig, u.DesiredConfig)
	case v.openShift && u.State != "Done":
		return fmt.Sprintf("its update is not done (state %s)", u.State)
	case u.KubeletVersion != v.nodes[0].Update.KubeletVersion:
		return fmt.Sprintf("its kubelet is %s, that of %s is %s", u.KubeletVersion, v.nodes[0].Name, v.nodes[0].Update.KubeletVersion)
	}
	w := n.Announced
	switch {
	case !n.Holds || n.Name == v.self || w.Running == v.target.String():
		return ""
	case w.Running == "":
		return "no agent there announces its VRRP settings"
	case w.Ready == "" && w.Why != "":
		return "not ready: " + w.Why
	case w.Ready != v.target.String():
		return "it is ready for " + orNothing(w.Ready) + ", not for " + v.target.String()
	}
	return ""
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
