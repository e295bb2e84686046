package migration

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Agreement on an instant. An announcement takes up to three seconds to reach the others
// (agent/nodes), and one more in a large cluster (announcementTime).
const (
	// leadTime is how far ahead an unplanned instant is.
	leadTime = 20 * time.Second
	// grid rounds such instants, so that nodes that evaluate within some seconds choose
	// the same one.
	grid = 10 * time.Second
	// marginTime is how long before the instant all must have agreed: twice the time of
	// an announcement, so that a withdrawn one arrives as well.
	marginTime = 8 * time.Second
	// lateTime is how long after the instant a node may still migrate by its clock.
	lateTime = 2 * time.Second
	// mostMissed bounds how often leadTime is doubled.
	mostMissed = 2
	// announcementTime is the additional delay of announcements for each node of the
	// cluster.
	announcementTime = 5 * time.Millisecond
)

type view struct {
	// now is the wall clock, up a monotonic clock.
	now             time.Time
	up              time.Duration
	self            string
	running, target v1alpha1.VRRPSettings
	planned         time.Time // the instant of the mode file; zero for none
	unready         string    // why this node is not ready; empty if ready
	openShift       bool      // the machine config operator runs
	fresh           bool      // an API server vouches for nodes
	nodes           []Node    // all of the cluster, this one included, by name
}

// Node is a node of the cluster as its peers see it.
type Node struct {
	Name   string
	Update nodelist.Update
	// Holds reports that the node can hold a VIP.
	Holds bool
	// Announced is its last announcement; the zero value for none.
	Announced Announcement
}

type verdict struct {
	// settled reports that no migration is pending.
	settled bool
	// announcement is the next announcement of this node.
	announcement Announcement
	// waits is the reason to wait; empty once all have agreed.
	waits string
	// at is the instant that this node proposes, agreed reports that all have agreed to
	// it, and left is the remaining time by the monotonic clock.
	at     time.Time
	agreed bool
	left   time.Duration
	// late reports that most others have migrated, so that no agreement is needed.
	late bool
}

// agreement is the progress of this node towards an agreement.
type agreement struct {
	at     time.Time // the announced instant; zero for none
	agreed bool      // all announced it, in time
	// anchor is when at was chosen, anchorUp the same by the monotonic clock, which
	// counts from then on: a step of the wall clock changes nothing (hard case 27).
	anchor   time.Time
	anchorUp time.Duration
	// missed is the number of instants without an agreement in time: each one doubles
	// leadTime, up to mostMissed.
	missed int
}

func (a *agreement) evaluate(v view) verdict {
	out := verdict{announcement: Announcement{Running: v.running.String()}}
	if understands(v.running, v.target) || v.running == v.target {
		*a = agreement{}
		out.settled, out.announcement.Ready = true, v.target.String()
		return out
	}
	if v.unready != "" {
		*a = agreement{}
		out.announcement.Why, out.waits = v.unready, "this node: "+v.unready
		return out
	}
	out.announcement.Ready = v.target.String()
	now := v.now.Round(0)
	if !a.anchor.IsZero() {
		now = a.anchor.Add(v.up - a.anchorUp)
	}
	if out.waits = v.missing(); out.waits == "" {
		out.late = v.mostMigrated()
		out.waits = a.choose(v, now)
	}
	if out.waits != "" {
		*a = agreement{}
		return out
	}
	out.announcement.At, out.at, out.left = a.at, a.at, a.at.Sub(now)
	switch other := v.otherwise(a.at); {
	case other != "":
		a.agreed = false
		out.waits = other
	case out.left >= v.margin():
		a.agreed = true
	case !a.agreed:
		out.waits = waitInstant.Text()
	}
	out.agreed = a.agreed
	return out
}

// margin returns marginTime for the size of the cluster.
func (v *view) margin() time.Duration {
	return marginTime + time.Duration(len(v.nodes))*announcementTime
}

// remaining returns the nodes that have to agree: those that can hold a VIP and do not run
// the target yet.
func (v *view) remaining() (out []Node) {
	return lists.Filter(v.nodes, func(n Node) bool { return n.Holds && n.Announced.Running != v.target.String() })
}

// migrated returns the number of other nodes that run the target.
func (v *view) migrated() (there int) {
	for _, n := range v.nodes {
		if n.Holds && n.Name != v.self && n.Announced.Running == v.target.String() {
			there++
		}
	}
	return there
}

// mostMigrated reports whether most of the others run the target.
func (v *view) mostMigrated() bool {
	others := 0
	for _, n := range v.nodes {
		if n.Holds && n.Name != v.self {
			others++
		}
	}
	return 2*v.migrated() > others
}

// choose chooses the instant to announce, or returns why there is none.
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
			return waitPlanned.Text(at.Format(time.RFC3339))
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
	for _, n := range v.remaining() {
		switch ahead := n.Announced.At.Sub(now); {
		case n.Name == v.self || !n.Announced.At.After(a.at):
		case ahead > 2*lead+grid:
			return n.Name + ": " + waitClock.Text(n.Announced.At.Format(time.RFC3339), ahead.Round(time.Second))
		default:
			set(n.Announced.At)
		}
	}
	return ""
}

// otherwise returns the nodes that do not announce this instant; empty for none. This
// node's announcement counts once the API has it.
func (v *view) otherwise(at time.Time) string {
	var first string
	others := 0
	for _, n := range v.remaining() {
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
	return waitAgreement.Text(first+more(others), at.Format(time.RFC3339))
}

func more(n int) string {
	if n > 1 {
		return fmt.Sprintf(" and %d more", n-1)
	}
	return ""
}

// missing returns what the cluster lacks for a migration; empty for nothing.
func (v *view) missing() string {
	if !v.fresh {
		return waitServer.Text()
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

// lacks returns what a node lacks for a migration; empty for nothing.
func (v *view) lacks(n *Node) string {
	u := n.Update
	switch {
	case v.openShift && u.CurrentConfig == "":
		return waitOperator.Text()
	case u.CurrentConfig != u.DesiredConfig:
		return waitUpdate.Text(u.CurrentConfig + ", not yet " + u.DesiredConfig)
	case v.openShift && u.State != "Done":
		return waitUpdate.Text("state " + u.State)
	case u.KubeletVersion != v.nodes[0].Update.KubeletVersion:
		return waitKubelet.Text(u.KubeletVersion, v.nodes[0].Name, v.nodes[0].Update.KubeletVersion)
	}
	w := n.Announced
	switch {
	case !n.Holds || n.Name == v.self || w.Running == v.target.String():
		return ""
	case w.Running == "":
		return waitAgent.Text()
	case w.Ready == "" && w.Why != "":
		return waitNotReady.Text(w.Why)
	case w.Ready != v.target.String():
		return waitOtherTarget.Text(cmp.Or(w.Ready, "nothing"), v.target)
	}
	return ""
}
