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
	// Out is without power or link: it serves nobody, and hears nobody.
	Out Effect = "out"
	// Mute runs no keepalived that could act: nobody hears it, and an address that
	// it has stays.
	Mute Effect = "mute"
	// Stale may have an address that somebody else left there.
	Stale Effect = "stale"
	// Unfit cannot serve the VIPs of some groups, and is to notice it.
	Unfit Effect = "unfit"
	// Unsure may serve or not: it recovers, or nobody looks after it. Nothing is
	// asked of it, but that there is no split brain.
	Unsure Effect = "unsure"
	// NoAPI is where no API server answers; UnsureAPI is where one does again, which
	// load balancers have yet to find out.
	NoAPI     Effect = "no-api"
	UnsureAPI Effect = "unsure-api"
	// Reload is where keepalived may read its configuration anew, which begins an
	// election again.
	Reload Effect = "reload"
)

// Forever is the end of what has none yet.
const Forever = time.Duration(math.MaxInt64)

// Condition is an effect on a node from a time on, to another.
type Condition struct {
	Node   string // every node if empty
	Effect Effect
	Group  v1alpha1.GroupRole // whose VIPs are meant; all if empty
	// Notice is how long the node takes to find out, of one that is Unfit.
	Notice   time.Duration
	From, To time.Duration
	// Why names the fault.
	Why string
}

// Topology says which nodes reach each other from a time on: those of one side.
// Nodes that are not named are on side 0. Moving is the side of those that are
// being moved, which may reach anybody or nobody.
type Topology struct {
	From  time.Duration
	Sides map[string]int
}

// Moving is between sides.
const Moving = -1

// Want says what is to be with a VIP from a time on.
type Want struct {
	From time.Duration
	What Wanted
}

// Wanted is whether a VIP is to be held.
type Wanted string

const (
	Held   Wanted = "held"   // by one node, of those that can serve it
	Either Wanted = "either" // it comes or goes just now
	Gone   Wanted = "gone"   // by nobody
)

// VIP is one that is looked at.
type VIP struct {
	Addr  netip.Addr
	Group v1alpha1.GroupRole
	// Wants are in the order of their times. Before the first it is Either.
	Wants []Want
}

// Span is a time for which a VIP was on a node's links; To is Forever while it is.
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
