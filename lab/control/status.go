package control

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/lab"
)

// Status is a lab as it is now.
type Status struct {
	Name string `json:"name"`
	// Domain is the cluster's.
	Domain string `json:"domain"`
	// Dir has all files of the lab, Log what happened in it.
	Dir string `json:"directory"`
	Log string `json:"log"`
	// Agent is the file of vipgen-agent that the nodes run.
	Agent string `json:"agent"`
	// PID is the process that runs the lab.
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	VIPs  []VIP     `json:"vips"`
	// CutOff are the machines on the other side of a partition.
	CutOff []string `json:"cutOff"`
	Nodes  []Node   `json:"nodes"`
	// Others are the machines that are no nodes of the cluster.
	Others []Machine `json:"others"`
}

// Machine is one that the lab has.
type Machine struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	// Namespace is its network namespace, as ip netns has it.
	Namespace string `json:"namespace"`
}

// Node is a node of the cluster.
type Node struct {
	Machine
	Role string `json:"role"`
	// Root is the directory that is / on the node. PID is its first process, 0
	// while it is off.
	Root  string `json:"root"`
	PID   int    `json:"pid"`
	Power bool   `json:"power"`
	Link  bool   `json:"link"`
	// VIPs are those that it has.
	VIPs []netip.Addr `json:"vips"`
	// Services are what can be stopped, Stopped those that do not run.
	Services []string `json:"services"`
	Stopped  []string `json:"stopped"`
	// LeftOut says why the node takes no part in elections.
	LeftOut []string `json:"idle,omitempty"`
	// Priorities are those of the groups in which it takes part.
	Priorities []Priority `json:"priorities"`
	// Backends are those of its HAProxy; absent where none runs.
	Backends []state.Backend `json:"backends,omitempty"`
	// Restarts counts containers that kubelet, and daemons that the agent started
	// again.
	Restarts int `json:"restarts"`
}

// Priority is what a node has in the election for a group's VIPs.
type Priority struct {
	Group string `json:"group"`
	// Priority is Base with the points of the terms that are on. Fault says that
	// the node cannot hold the VIPs.
	Priority int          `json:"priority"`
	Base     int          `json:"base"`
	Fault    bool         `json:"fault,omitempty"`
	Terms    []state.Term `json:"terms"`
}

// Status returns the lab as it is now.
func (l *Lab) Status() (*Status, error) {
	l.mu.Lock()
	cut := append([]string{}, l.cut...)
	l.mu.Unlock()
	s := &Status{
		Name: l.place.Name, Domain: l.cluster.Spec().Domain, Dir: l.place.dir(), Log: l.place.Log(), Agent: l.agent,
		PID: os.Getpid(), Since: l.began, VIPs: l.watch.vips(), CutOff: cut,
	}
	var errs []error
	for _, n := range l.cluster.Nodes() {
		node, err := l.nodeStatus(n, s.VIPs)
		errs = append(errs, err)
		s.Nodes = append(s.Nodes, node)
	}
	s.Others = []Machine{machine(l.cluster.Client, l.plan.Client.Addresses), machine(l.cluster.Site, l.plan.Site.Addresses)}
	return s, errors.Join(errs...)
}

func machine(n *netns.Node, addresses []netip.Prefix) Machine {
	m := Machine{Name: n.Name, Namespace: n.Namespace()}
	for _, a := range addresses {
		m.Addresses = append(m.Addresses, a.Addr())
	}
	return m
}

func (l *Lab) nodeStatus(n *lab.Node, vips []VIP) (Node, error) {
	out := Node{
		Machine: machine(n.Node, n.OwnAddresses()), Role: n.Role, Root: n.Path("/"), PID: n.Init(),
		VIPs: []netip.Addr{}, Services: n.Services(), Stopped: append([]string{}, n.Stopped()...), Priorities: []Priority{},
	}
	out.Power = out.PID != 0
	for _, v := range vips {
		if slices.Contains(v.Holders, n.Name) {
			out.VIPs = append(out.VIPs, v.Address)
		}
	}
	var err error
	if out.Link, err = n.Up(); err != nil || !out.Power {
		return out, err
	}
	for _, p := range n.Kubelet.Pods() {
		for _, c := range p.Containers {
			out.Restarts += c.Status().Restarts
		}
	}
	return out, l.jobs(n, &out)
}

// jobs adds what the agent's jobs on the node say.
func (l *Lab) jobs(n *lab.Node, out *Node) error {
	k, err := published[state.Keepalived](n)
	if err != nil {
		return err
	}
	if k != nil {
		out.Restarts += k.Restarts
		out.LeftOut = k.LeftOut
		out.Priorities = l.priorities(k.Instances)
	}
	h, err := published[state.HAProxy](n)
	if err != nil {
		return err
	}
	if h != nil {
		out.Restarts += h.Restarts
		out.Backends = h.Backends
	}
	d, err := published[state.CoreDNS](n)
	if err == nil && d != nil {
		out.Restarts += d.Restarts
	}
	return err
}

// published is lab.Published of a node that may lose its power meanwhile.
func published[T state.Job](n *lab.Node) (*T, error) {
	s, err := lab.Published[T](n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s, err
}

// priorities are those of groups: the instances of a group's families have the
// same.
func (l *Lab) priorities(instances []state.Instance) []Priority {
	out := []Priority{}
	for _, g := range l.cluster.Spec().Groups {
		for _, i := range instances {
			if slices.Contains(g.VIPs, i.VIP) {
				out = append(out, Priority{Group: g.Name, Priority: i.Priority, Base: i.Base, Fault: i.Fault, Terms: i.Terms})
				break
			}
		}
	}
	return out
}

// Holder returns who has the VIP, in words.
func (v VIP) Holder() string {
	switch len(v.Holders) {
	case 0:
		return "none"
	case 1:
		return v.Holders[0]
	default:
		return "SPLIT BRAIN: " + strings.Join(v.Holders, ", ")
	}
}
