package state

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Keepalived is the state of the keepalived job.
type Keepalived struct {
	// Wanted reports whether keepalived should run.
	Wanted bool `json:"wanted"`
	Daemon
	// Scheduling is the scheduling policy of the process that sends adverts, by its name
	// in sched(7).
	Scheduling string `json:"scheduling,omitempty"`
	// LeftOut, idle in JSON, has a line for each reason why VIPs of this node's role are left
	// out.
	LeftOut []string `json:"idle,omitempty"`
	// VRRP are the settings in force.
	VRRP *v1alpha1.VRRPSettings `json:"vrrp,omitempty"`
	// Migration is the pending migration to other settings; nil for none.
	Migration  *Migration `json:"migration,omitempty"`
	Migrations Migrations `json:"moves,omitzero"`
	Instances  []Instance `json:"instances,omitempty"`
	Facts      []Fact     `json:"facts,omitempty"`
	// Guard drops packets of hosts outside of the groups before keepalived.
	Guard Guard `json:"guard"`
	// ClusterProblem is why cluster.yaml on disk is not used.
	ClusterProblem string `json:"clusterProblem,omitempty"`
}

// Instance is the state of one VIP.
type Instance struct {
	Name      string     `json:"name"`
	VIP       netip.Addr `json:"vip"`
	Interface string     `json:"interface"`
	// Source is the address that receives the peers' adverts; zero in multicast mode.
	Source netip.Addr   `json:"source,omitzero"`
	Peers  []netip.Addr `json:"peers,omitempty"`
	// Holds reports that the VIP is on an interface of this node.
	Holds bool `json:"holds"`
	// Holder is the other node that holds the VIP, by keepalived's last dump; nil if
	// unknown.
	Holder *Holder `json:"holder,omitempty"`
	// Clients is the number of clients in lists of the VIP's holder, which this node
	// notifies if it acquires the VIP; 0 on the holder.
	Clients int `json:"clients,omitempty"`
	// Priority is Base plus the points of all terms that are on. Fault reports that a
	// veto is on, so that the node cannot hold the VIP.
	Priority int    `json:"priority"`
	Base     int    `json:"base"`
	Fault    bool   `json:"fault,omitempty"`
	Terms    []Term `json:"terms,omitempty"`
}

// Term is a part of a priority; one without points is a veto.
type Term struct {
	Name    string `json:"name"`
	Points  int    `json:"points"`
	On      bool   `json:"on"`
	Meaning string `json:"meaning"`
}

// Holder is another node that holds a VIP, by its adverts.
type Holder struct {
	// Node is its name, empty if no peer has the address.
	Node    string     `json:"node,omitempty"`
	Address netip.Addr `json:"address"`
	// Priority is the advertised priority.
	Priority int `json:"priority"`
}

// Migrations counts migrations to other VRRP settings by outcome.
type Migrations struct {
	Migrated   int `json:"moved"`
	RolledBack int `json:"back"`
	Refused    int `json:"refusedModeFiles"`
}

// Migration is the progress of a migration to other VRRP settings.
type Migration struct {
	Target v1alpha1.VRRPSettings `json:"target"`
	// Ready reports that this node could migrate now. WaitsFor is what is missing in the
	// cluster.
	Ready    bool   `json:"ready"`
	WaitsFor string `json:"waitsFor,omitempty"`
	// At is the instant that this node proposes; Agreed reports that all nodes agree to
	// it.
	At        time.Time `json:"at,omitzero"`
	Agreed    bool      `json:"agreed,omitempty"`
	Migrating bool      `json:"moving,omitempty"`
}

// Fact is a fact about the health of the node.
type Fact struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Why is a short reason if it is false.
	Why string `json:"why,omitempty"`
}

// Guard is the state of the guard, which drops packets of hosts outside of the groups.
type Guard struct {
	// InPlace reports that only packets of a group's nodes pass.
	InPlace bool `json:"inPlace"`
	// Restored counts how often the rules were restored after something else changed or
	// removed them.
	Restored int       `json:"restored,omitempty"`
	Dropped  []Dropped `json:"dropped,omitempty"`
}

// Dropped counts the dropped packets of a group.
type Dropped struct {
	Interface string `json:"interface"`
	// Family is IPv4 or IPv6.
	Family   string `json:"family"`
	RouterID int    `json:"routerID"`
	// Packets counts since the agent started.
	Packets uint64 `json:"packets"`
}
