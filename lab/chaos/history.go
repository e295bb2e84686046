package chaos

import (
	"math"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// effect is what a fault means to a node for a while.
type effect string

// Effects.
const (
	// effectOut is without power or link: it serves nobody, and hears nobody.
	effectOut effect = "out"
	// effectMute runs no keepalived that could act: nobody hears it, and an address that
	// it has stays.
	effectMute effect = "mute"
	// effectStale may have an address that somebody else left there.
	effectStale effect = "stale"
	// effectUnfit cannot serve the VIPs of some groups, and is to notice it.
	effectUnfit effect = "unfit"
	// effectUnsure may serve or not: it recovers, or nobody looks after it. Nothing is
	// asked of it, but that there is no split brain.
	effectUnsure effect = "unsure"
	// effectNoAPI is where no API server answers; effectUnsureAPI is where one does again, which
	// load balancers have yet to find out.
	effectNoAPI     effect = "no-api"
	effectUnsureAPI effect = "unsure-api"
	// effectReload is where keepalived may read its configuration anew, which begins an
	// election again.
	effectReload effect = "reload"
)

// forever is the end of what has none yet.
const forever = time.Duration(math.MaxInt64)

// condition is an effect on a node from a time on, to another.
type condition struct {
	Node   string // every node if empty
	Effect effect
	Group  v1alpha1.GroupRole // whose VIPs are meant; all if empty
	// Notice is how long the node takes to find out, of one that is unfit.
	Notice   time.Duration
	From, To time.Duration
	// Why names the fault.
	Why string
}

// topology says which nodes reach each other from a time on: those of one side.
// Nodes that are not named are on side 0. betweenSides is the side of those that are
// being moved, which may reach anybody or nobody.
type topology struct {
	From  time.Duration
	Sides map[string]int
}

// betweenSides is neither side of a partition.
const betweenSides = -1

// want says what is to be with a VIP from a time on.
type want struct {
	From time.Duration
	What wanted
}

// wanted is whether a VIP is to be held.
type wanted string

const (
	wantHeld   wanted = "held"   // by one node, of those that can serve it
	wantEither wanted = "either" // it comes or goes just now
	wantGone   wanted = "gone"   // by nobody
)

// vip is one that is looked at.
type vip struct {
	Addr  netip.Addr
	Group v1alpha1.GroupRole
	// Wants are in the order of their times. Before the first it is wantEither.
	Wants []want
}

// span is a time for which a VIP was on a node's links; To is forever while it is.
type span struct {
	VIP      netip.Addr
	Node     string
	From, To time.Duration
}

// stall is a time by which this machine itself was late.
type stall struct {
	At, Late time.Duration
}

// node is one that is looked at.
type node struct {
	Name string
	// API says that it has an API server.
	API bool
	// Groups are those whose VIPs it is there for.
	Groups []v1alpha1.GroupRole
}

// logged is how much a container has logged up to a time, in bytes.
type logged struct {
	At              time.Duration
	Node, Container string
	Bytes           int64
}

// history is all that is needed to say whether something was wrong from a time on.
// Times are since the beginning of the watch.
type history struct {
	From, Now  time.Duration
	Nodes      []node
	VIPs       []vip
	Holders    []span
	Conditions []condition
	Topologies []topology
	Stalls     []stall
	Logged     []logged // in the order of their times
}
