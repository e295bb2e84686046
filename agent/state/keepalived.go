package state

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Keepalived is the state of the keepalived job.
type Keepalived struct {
	// Wanted says whether keepalived is to run.
	Wanted bool `json:"wanted"`
	Daemon
	// Scheduling is the policy of the process that sends adverts, by its name in
	// sched(7).
	Scheduling string `json:"scheduling,omitempty"`
	// Idle says, a line each, why VIPs of this node's role are left out.
	Idle []string `json:"idle,omitempty"`
	// VRRP are the settings in force.
	VRRP *v1alpha1.VRRPSettings `json:"vrrp,omitempty"`
	// Migration is the move to others; nil where there is none to make.
	Migration *Migration `json:"migration,omitempty"`
	Moves     Moves      `json:"moves,omitzero"`
	Instances []Instance `json:"instances,omitempty"`
	Facts     []Fact     `json:"facts,omitempty"`
	// Guard keeps packets of strangers from keepalived.
	Guard Guard `json:"guard"`
	// ClusterProblem says why cluster.yaml on disk is not used.
	ClusterProblem string `json:"clusterProblem,omitempty"`
}

// Instance is one VIP.
type Instance struct {
	Name      string     `json:"name"`
	VIP       netip.Addr `json:"vip"`
	Interface string     `json:"interface"`
	// Source is where the peers' adverts come to; the zero value in multicast mode.
	Source netip.Addr   `json:"source,omitzero"`
	Peers  []netip.Addr `json:"peers,omitempty"`
	// Holds says that the VIP is on an interface of this node.
	Holds bool `json:"holds"`
	// Holder is who holds it where this node does not, as keepalived knew when it
	// was probed last; nil if it knew of nobody.
	Holder *Holder `json:"holder,omitempty"`
	// Clients is how many connections of clients to the VIP its holder has told this node
	// of, which tells them if the VIP comes here; 0 on the holder.
	Clients int `json:"clients,omitempty"`
	// Priority is Base with the points of all terms that are on. Fault says that
	// a veto is on, so that the node cannot hold the VIP.
	Priority int    `json:"priority"`
	Base     int    `json:"base"`
	Fault    bool   `json:"fault,omitempty"`
	Terms    []Term `json:"terms,omitempty"`
}

// Term is one part of a priority; one without points is a veto.
type Term struct {
	Name    string `json:"name"`
	Points  int    `json:"points"`
	On      bool   `json:"on"`
	Meaning string `json:"meaning"`
}

// Holder is another node that holds a VIP, as the adverts that come here say.
type Holder struct {
	// Node is its name, empty where no peer has the address.
	Node    string     `json:"node,omitempty"`
	Address netip.Addr `json:"address"`
	// Priority is what the adverts carry.
	Priority int `json:"priority"`
}

// Moves counts what became of moves to other VRRP settings.
type Moves struct {
	Moved   int `json:"moved"`
	Back    int `json:"back"`
	Refused int `json:"refusedModeFiles"`
}

// Migration is how far a move to other VRRP settings is.
type Migration struct {
	Target v1alpha1.VRRPSettings `json:"target"`
	// Ready says that this node could move now. WaitsFor says what is missing,
	// anywhere in the cluster.
	Ready    bool   `json:"ready"`
	WaitsFor string `json:"waitsFor,omitempty"`
	// At is the instant that this node proposes; Agreed says that all nodes do.
	At     time.Time `json:"at,omitzero"`
	Agreed bool      `json:"agreed,omitempty"`
	Moving bool      `json:"moving,omitempty"`
}

// Fact is what is known about one thing on the node.
type Fact struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Why says in a few words why it is not so.
	Why string `json:"why,omitempty"`
}

// Guard is the state of the guard, which keeps packets of strangers from keepalived.
type Guard struct {
	// InPlace says that packets of the groups come from their nodes alone.
	InPlace bool `json:"inPlace"`
	// Restored counts how often something else had removed or changed the rules.
	Restored int       `json:"restored,omitempty"`
	Dropped  []Dropped `json:"dropped,omitempty"`
}

// Dropped is what was dropped of a group.
type Dropped struct {
	Interface string `json:"interface"`
	// Family is IPv4 or IPv6.
	Family   string `json:"family"`
	RouterID int    `json:"routerID"`
	// Packets counts since the agent started.
	Packets uint64 `json:"packets"`
}
