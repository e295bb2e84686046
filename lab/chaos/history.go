package chaos

import (
	"math"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// effect is the effect of a fault on a node for a while.
type effect string

// Effects.
const (
	// effectOut: without power or link, the node serves nothing and receives nothing.
	effectOut effect = "out"
	// effectMute: no keepalived on the node can act. It sends nothing, and keeps its addresses.
	effectMute effect = "mute"
	// effectStale: the node may have a VIP that was left on its link.
	effectStale effect = "stale"
	// effectUnfit: the node cannot serve the VIPs of some groups, and is to notice it.
	effectUnfit effect = "unfit"
	// effectUnsure: the node may serve or not, because it recovers or its agent does not run. Only
	// a split brain is a violation.
	effectUnsure effect = "unsure"
	// effectNoAPI: no API server answers there. effectUnsureAPI: one answers again, but load
	// balancers may not have noticed yet.
	effectNoAPI     effect = "no-api"
	effectUnsureAPI effect = "unsure-api"
	// effectDisowned: the others do not know the node, and it does not know that.
	effectDisowned effect = "disowned"
	// effectLeaving: the node leaves as planned, or is back: routers send it packets or not, and none
	// of them is lost.
	effectLeaving effect = "leaving"
	// effectUnwatched: the node is unsure, and its router may find only after the hold time that it is dead.
	effectUnwatched effect = "unwatched"
	// effectReload: keepalived may reload its configuration, which starts a new election.
	effectReload effect = "reload"
)

// forever is the end of conditions and spans that have not ended.
const forever = time.Duration(math.MaxInt64)

// condition is an effect on a node for a time.
type condition struct {
	Node   string // every node if empty
	Effect effect
	Group  v1alpha1.GroupRole // whose VIPs are affected; all if empty
	// Notice is the time until the node notices that it is unfit.
	Notice   time.Duration
	From, To time.Duration
	// Why names the fault.
	Why string
}

// topology holds the sides of the network from a time on: nodes of one side reach each other. Nodes
// that are not named are on side 0. Nodes on betweenSides are being moved and may reach any node or
// none.
type topology struct {
	From  time.Duration
	Sides map[string]int
}

// betweenSides is neither side of a partition.
const betweenSides = -1

// want is the wanted state of a VIP from a time on.
type want struct {
	From time.Duration
	What wanted
}

// wanted is the wanted state of a VIP.
type wanted string

const (
	wantHeld   wanted = "held"   // by one node, of those that can serve it
	wantEither wanted = "either" // it is being added or removed
	wantGone   wanted = "gone"   // by no node
)

// vip is a VIP of a history.
type vip struct {
	Addr  netip.Addr
	Group v1alpha1.GroupRole
	// Wants are sorted by time. Before the first the state is wantEither.
	Wants []want
}

// span is a time in which a VIP was on a node's links; To is forever while it is.
type span struct {
	VIP      netip.Addr
	Node     string
	From, To time.Duration
}

// stall is a delay of this machine itself.
type stall struct {
	At, Late time.Duration
}

// node is a node of a history.
type node struct {
	Name string
	// API is set if it has an API server.
	API bool
	// Groups are the groups whose VIPs the node can hold.
	Groups []v1alpha1.GroupRole
	// Rack is the number of the router that VIPs by BGP are announced to.
	Rack int
}

// logged is the number of bytes that a container has logged up to a time.
type logged struct {
	At              time.Duration
	Node, Container string
	Bytes           int64
}

// history is the record of a run from a time on. Times are relative to the start of the watch.
type history struct {
	From, Now  time.Duration
	Nodes      []node
	VIPs       []vip
	Holders    []span
	Conditions []condition
	Topologies []topology
	Stalls     []stall
	Logged     []logged // sorted by time
	Requests   []request
}
