package keepalived

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/agent/trackfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// StateName is the name under which the job publishes State.
const StateName = "keepalived"

// State is what the job makes known to the agent's other commands.
type State struct {
	// Wanted says whether keepalived is to run. PID is its process ID, in the
	// job's own container; 0 while it does not run.
	Wanted bool `json:"wanted"`
	PID    int  `json:"pid,omitempty"`
	// Scheduling is how the process that sends adverts gets its time on the cores.
	Scheduling supervise.Scheduling `json:"scheduling,omitempty"`
	// Restarts counts how often it ended although it was wanted.
	Restarts int `json:"restarts"`
	// Idle says, a line each, why VIPs of this node's role are left out.
	Idle []string `json:"idle,omitempty"`
	// VRRP are the settings in force.
	VRRP *v1alpha1.VRRPSettings `json:"vrrp,omitempty"`
	// Migration is the move to others; nil where there is none to make.
	Migration *Migration    `json:"migration,omitempty"`
	Moves     Moves         `json:"moves,omitzero"`
	Instances []Instance    `json:"instances,omitempty"`
	Facts     []health.Fact `json:"facts,omitempty"`
	// Guard keeps packets of strangers from keepalived.
	Guard Guard `json:"guard"`
	// Config is what was applied, and what was refused.
	Config daemon.ConfigStatus `json:"config"`
	// ClusterProblem says why cluster.yaml on disk is not used.
	ClusterProblem string `json:"clusterProblem,omitempty"`
}

// Instance is one VIP.
type Instance struct {
	Name      string       `json:"name"`
	VIP       netip.Addr   `json:"vip"`
	Interface string       `json:"interface"`
	Peers     []netip.Addr `json:"peers,omitempty"`
	// Holds says that the VIP is on an interface of this node.
	Holds bool `json:"holds"`
	// Holder is who holds it where this node does not, as keepalived knew when it
	// was probed last; nil if it knew of nobody.
	Holder *Holder `json:"holder,omitempty"`
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

// heldBy fills in the holder, who is one of the peers if it is a node.
func (i *Instance) heldBy(holders map[string]Holder, peers []v1alpha1.Peer) {
	h, known := holders[i.Name]
	if !known || i.Holds {
		return
	}
	for _, p := range peers {
		if slices.Contains(p.Addresses, h.Address) || slices.Contains(p.Elsewhere, h.Address) {
			h.Node = p.Name
		}
	}
	i.Holder = &h
}

// holds says whether a VIP is on this node; nothing is known before the first
// State.
func (s *State) holds(vip netip.Addr) bool {
	return s != nil && slices.ContainsFunc(s.Instances, func(i Instance) bool { return i.VIP == vip && i.Holds })
}

// instances says how the VIPs of a configuration stand.
func instances(conf *keepalived.Conf, values []trackfile.Value, held []netip.Addr) []Instance {
	on := map[string]bool{}
	for _, v := range values {
		on[v.Name] = v.Value == 1
	}
	var out []Instance
	for _, i := range conf.Instances {
		s := Instance{
			Name: i.Name, VIP: i.VIP.Addr(), Interface: i.Interface, Peers: i.Peers,
			Holds: slices.Contains(held, i.VIP.Addr()), Priority: i.Priority, Base: i.Priority,
		}
		for _, t := range termsOf(conf, i) {
			s.Terms = append(s.Terms, Term{Name: t.Name, Points: t.Points, On: on[t.Name], Meaning: t.Meaning})
			switch {
			case !on[t.Name]:
			case t.Points == 0:
				s.Fault = true
			default:
				s.Priority += t.Points
			}
		}
		out = append(out, s)
	}
	return out
}

// termsOf are the instance's own or those of its sync group.
func termsOf(conf *keepalived.Conf, i keepalived.Instance) []vrrp.Term {
	for _, g := range conf.SyncGroups {
		if slices.Contains(g.Members, i.Name) {
			return g.Terms
		}
	}
	return i.Terms
}
