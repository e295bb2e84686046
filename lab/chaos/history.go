package chaos

import (
	"math"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Effect is what a fault means to a node for a while.
type Effect string

// Effects.
const (
	// effectOut is without power or link: it serves nobody, and hears nobody.
	effectOut Effect = "out"
	// effectMute runs no keepalived that could act: nobody hears it, and an address that
	// it has stays.
	effectMute Effect = "mute"
	// effectStale may have an address that somebody else left there.
	effectStale Effect = "stale"
	// effectUnfit cannot serve the VIPs of some groups, and is to notice it.
	effectUnfit Effect = "unfit"
	// effectUnsure may serve or not: it recovers, or nobody looks after it. Nothing is
	// asked of it, but that there is no split brain.
	effectUnsure Effect = "unsure"
	// effectNoAPI is where no API server answers; effectUnsureAPI is where one does again, which
	// load balancers have yet to find out.
	effectNoAPI     Effect = "no-api"
	effectUnsureAPI Effect = "unsure-api"
	// effectReload is where keepalived may read its configuration anew, which begins an
	// election again.
	effectReload Effect = "reload"
)

// forever is the end of what has none yet.
const forever = time.Duration(math.MaxInt64)

// Condition is an effect on a node from a time on, to another.
type Condition struct {
	Node   string // every node if empty
	Effect Effect
	Group  v1alpha1.GroupRole // whose VIPs are meant; all if empty
	// Notice is how long the node takes to find out, of one that is unfit.
	Notice   time.Duration
	From, To time.Duration
	// Why names the fault.
	Why string
}

// Topology says which nodes reach each other from a time on: those of one side.
// Nodes that are not named are on side 0. betweenSides is the side of those that are
// being moved, which may reach anybody or nobody.
type Topology struct {
	From  time.Duration
	Sides map[string]int
}

// betweenSides is neither side of a partition.
const betweenSides = -1

// Want says what is to be with a VIP from a time on.
type Want struct {
	From time.Duration
	What Wanted
}

// Wanted is whether a VIP is to be held.
type Wanted string

const (
	wantHeld   Wanted = "held"   // by one node, of those that can serve it
	wantEither Wanted = "either" // it comes or goes just now
	wantGone   Wanted = "gone"   // by nobody
)

// VIP is one that is looked at.
type VIP struct {
	Addr  netip.Addr
	Group v1alpha1.GroupRole
	// Wants are in the order of their times. Before the first it is wantEither.
	Wants []Want
}

// Span is a time for which a VIP was on a node's links; To is forever while it is.
type Span struct {
	VIP      netip.Addr
	Node     string
	From, To time.Duration
}

// Stall is a time by which this machine itself was late.
type Stall struct {
	At, Late time.Duration
}

// Node is one that is looked at.
type Node struct {
	Name string
	// API says that it has an API server.
	API bool
	// Groups are those whose VIPs it is there for.
	Groups []v1alpha1.GroupRole
}

// Logged is how much a container has logged up to a time, in bytes.
type Logged struct {
	At              time.Duration
	Node, Container string
	Bytes           int64
}

// History is all that is needed to say whether something was wrong from a time on.
// Times are since the beginning of the watch.
type History struct {
	From, Now  time.Duration
	Nodes      []Node
	VIPs       []VIP
	Holders    []Span
	Conditions []Condition
	Topologies []Topology
	Stalls     []Stall
	Logged     []Logged // in the order of their times
}
