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

// Status is the current state of a lab.
type Status struct {
	Name string `json:"name"`
	// Domain is the cluster's domain.
	Domain string `json:"domain"`
	// Dir has all files of the lab. Log is the lab's log.
	Dir string `json:"directory"`
	Log string `json:"log"`
	// Agent is the path of the vipgen-agent that the nodes run.
	Agent string `json:"agent"`
	// PID is the process that runs the lab.
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	VIPs  []VIP     `json:"vips"`
	// CutOff are the machines on the named side of a partition.
	CutOff []string `json:"cutOff"`
	Nodes  []Node   `json:"nodes"`
	// Others are the machines that are not nodes of the cluster.
	Others []Machine `json:"others"`
}

// Routed reports whether routers know the VIPs.
func (s *Status) Routed() bool { return len(s.VIPs) > 0 && s.VIPs[0].Routed }

// Machine is a machine of the lab.
type Machine struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	// Namespace is its network namespace, as listed by ip netns.
	Namespace string `json:"namespace"`
	// Shell is the command that controls a router, without its arguments.
	Shell []string `json:"shell,omitempty"`
}

// Node is a node of the cluster.
type Node struct {
	Machine
	Role string `json:"role"`
	// Root is the directory that is / on the node. PID is its first process, 0 while it is off.
	Root  string `json:"root"`
	PID   int    `json:"pid"`
	Power bool   `json:"power"`
	Link  bool   `json:"link"`
	// VIPs are the virtual IPs that it holds.
	VIPs []netip.Addr `json:"vips"`
	// Services can be stopped. Stopped are those that do not run.
	Services []string `json:"services"`
	Stopped  []string `json:"stopped"`
	// LeftOut has the reasons why the node takes no part in elections.
	LeftOut []string `json:"idle,omitempty"`
	// Priorities has an entry for each group in which the node takes part.
	Priorities []Priority `json:"priorities"`
	// Backends are the backends of its HAProxy; absent where none runs.
	Backends []state.Backend `json:"backends,omitempty"`
	// Restarts is the number of restarts: of containers by kubelet, and of daemons by the agent.
	Restarts int `json:"restarts"`
}

// Priority is a node's priority in the election for a group's VIPs.
type Priority struct {
	Group string `json:"group"`
	// Priority is Base plus the points of the terms that are on. Fault is set if the node cannot
	// hold the VIPs.
	Priority int          `json:"priority"`
	Base     int          `json:"base"`
	Fault    bool         `json:"fault,omitempty"`
	Terms    []state.Term `json:"terms"`
}

// Status returns the current state of the lab.
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
	for _, r := range l.routers.All() {
		s.Others = append(s.Others, Machine{Name: r.Name, Addresses: []netip.Addr{r.Address}, Namespace: r.Namespace(), Shell: r.Shell()})
	}
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

// jobs adds the published state of the agent's jobs on the node.
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

// published is lab.Published for a node that may lose its power meanwhile.
func published[T state.Job](n *lab.Node) (*T, error) {
	s, err := lab.Published[T](n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s, err
}

// priorities returns the priorities by group: all instances of a group have the same.
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

// Holder returns the holder's name, for tables.
func (v VIP) Holder() string {
	switch {
	case len(v.Holders) == 0:
		return "none"
	case v.Routed || len(v.Holders) == 1:
		return strings.Join(v.Holders, ", ")
	default:
		return "SPLIT BRAIN: " + strings.Join(v.Holders, ", ")
	}
}
