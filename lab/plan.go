package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
)

// WithVRRP gives a cluster other VRRP settings, from the first packet on.
func WithVRRP(c *render.Cluster, v v1alpha1.VRRPSettings) *render.Cluster {
	out, config := *c, *c.Config
	config.Spec.VRRP = v1alpha1.ClusterVRRP{Target: v}
	out.Config, out.ProfileReason = &config, ""
	return &out
}

// Machine is one that a lab is to have.
type Machine struct {
	Name string
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one; empty
	// for a machine that is no node of the cluster.
	Role string
	// Addresses are those of its interface, with their networks.
	Addresses []netip.Prefix
}

// Plan says which machines a lab has.
type Plan struct {
	// Nodes are those of the cluster, control plane first, the bootstrap last.
	Nodes []Machine
	// Client asks for the VIPs from outside; Site has the name server that the
	// nodes' network brings, and what real clusters have elsewhere.
	Client, Site Machine
}

// PlanOptions say what of a cluster a lab is to have.
type PlanOptions struct {
	// Counts of nodes by role; a role that is missing has as many as the
	// install-config says, workers MaxWorkers at most for each ingress controller.
	Counts map[string]int
	// Bootstrap asks for a bootstrap host.
	Bootstrap bool
}

// MaxWorkers is how many workers a lab has for each ingress controller unless more are
// asked for: they do the same, and each takes processes of this machine. Routers of
// different controllers take the same ports.
const MaxWorkers = 2

// maxNodes bounds a lab.
const maxNodes = 32

// NewPlan says which machines a lab of the cluster has. Nodes that agent-config
// names keep name and addresses; others are called master-0, worker-0 and so on,
// and get the first addresses of the machine networks that nothing has. The error
// says which option does not go with the cluster.
func NewPlan(c *render.Cluster, o PlanOptions) (*Plan, error) {
	for _, role := range sortedKeys(o.Counts) {
		if n := o.Counts[role]; n < 0 || n > maxNodes {
			return nil, fmt.Errorf("%d nodes of the pool %q: a lab has 0 to %d nodes", n, role, maxNodes)
		}
		if !slices.Contains(c.Roles, role) || role == v1alpha1.RoleBootstrap {
			return nil, fmt.Errorf("this cluster has no pool %q of nodes", role)
		}
	}
	p := &planner{config: c.Config, used: map[netip.Addr]bool{}}
	p.reserve()
	plan := &Plan{}
	for _, role := range c.Roles {
		if role == v1alpha1.RoleBootstrap {
			continue
		}
		n, asked := o.Counts[role]
		if !asked {
			n = c.Replicas[role]
			if role != v1alpha1.RoleMaster && role != v1alpha1.RoleArbiter {
				n = min(n, MaxWorkers*max(1, ingressControllers(c)))
			}
		}
		nodes, err := p.nodes(role, n)
		if err != nil {
			return nil, err
		}
		plan.Nodes = append(plan.Nodes, nodes...)
	}
	if o.Bootstrap && !c.OwnsBootstrap() {
		return nil, errors.New("--bootstrap needs loadBalancer.type UserManaged in the install-config: without it OpenShift configures the bootstrap host, and vipgen renders nothing for it")
	}
	if o.Bootstrap {
		m, err := p.machine(v1alpha1.RoleBootstrap, v1alpha1.RoleBootstrap)
		if err != nil {
			return nil, err
		}
		plan.Nodes = append(plan.Nodes, m)
	}
	if err := plan.distinct(); err != nil {
		return nil, err
	}
	if len(plan.Nodes) > maxNodes {
		return nil, fmt.Errorf("%d nodes: a lab has at most %d", len(plan.Nodes), maxNodes)
	}
	var err error
	if plan.Client, err = p.machine("client", ""); err == nil {
		plan.Site, err = p.machine("site", "")
	}
	return plan, err
}

// ingressControllers is how many of them have VIPs.
func ingressControllers(c *render.Cluster) (n int) {
	for _, g := range c.Config.Spec.Groups {
		if g.Role == v1alpha1.GroupIngress {
			n++
		}
	}
	return n
}

// distinct refuses two machines with one name or address. Agent-based installs
// have such: their rendezvous host is the bootstrap first and a node later.
func (p *Plan) distinct() error {
	names, addresses := map[string]bool{}, map[netip.Addr]string{}
	for _, m := range p.Nodes {
		if names[m.Name] {
			return fmt.Errorf("two nodes are called %q", m.Name)
		}
		names[m.Name] = true
		for _, a := range m.Addresses {
			if other := addresses[a.Addr()]; other != "" {
				return fmt.Errorf("%s and %s have the address %v both: a rendezvous host is the bootstrap first and a node later, and a lab has either", other, m.Name, a.Addr())
			}
			addresses[a.Addr()] = m.Name
		}
	}
	return nil
}

// planner gives out addresses.
type planner struct {
	config *v1alpha1.ClusterConfig
	used   map[netip.Addr]bool
}

// firstHost is the number, in a network, of the first address that is given out:
// those before it are often a router's.
const firstHost = 10

// reserve keeps the addresses that mean something to the cluster.
func (p *planner) reserve() {
	for _, g := range p.config.Spec.Groups {
		for _, vip := range g.VIPs {
			p.used[vip] = true
		}
	}
	for _, peer := range p.config.Spec.Peers {
		for _, a := range peer.Addresses {
			p.used[a] = true
		}
	}
	for _, r := range p.config.Spec.DNS.Records {
		for _, a := range r.Addresses {
			p.used[a] = true
		}
	}
	for _, a := range p.config.Spec.DNS.Upstreams {
		p.used[a] = true
	}
}

// nodes gives n nodes of a pool: those that are known, then others.
func (p *planner) nodes(role string, n int) (out []Machine, err error) {
	for _, peer := range p.config.Spec.Peers {
		if peer.Role == role && len(out) < n {
			out = append(out, Machine{Name: peer.Name, Role: role, Addresses: p.config.Spec.WithNetworks(peer.Addresses)})
		}
	}
	for i := 0; len(out) < n; i++ {
		name := fmt.Sprintf("%s-%d", role, i)
		if slices.ContainsFunc(out, func(m Machine) bool { return m.Name == name }) {
			continue
		}
		m, err := p.machine(name, role)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// machine gives a machine free addresses, one of each family, and one in each further
// network that holds VIPs. The bootstrap keeps those that are known.
func (p *planner) machine(name, role string) (Machine, error) {
	m := Machine{Name: name, Role: role}
	if role == v1alpha1.RoleBootstrap {
		for _, peer := range p.config.Spec.Peers {
			if peer.Role == role {
				m.Addresses = p.config.Spec.WithNetworks(peer.Addresses)
				return m, nil
			}
		}
	}
	have := map[bool]bool{} // families, by Is4
	networks := p.config.Spec.AssumedNetworks()
	for _, network := range networks {
		family := network.Addr().Is4()
		if !have[family] || slices.Contains(p.config.Spec.VIPNetworks(networks), network) {
			a, err := p.free(network)
			if err != nil {
				return m, fmt.Errorf("%s: %w", name, err)
			}
			have[family] = true
			m.Addresses = append(m.Addresses, a)
		}
	}
	if len(m.Addresses) == 0 {
		return m, fmt.Errorf("the install-config has no network to take an address of %s from", name)
	}
	return m, nil
}

func (p *planner) free(network netip.Prefix) (netip.Prefix, error) {
	a := network.Masked().Addr()
	for range firstHost {
		if next := a.Next(); network.Contains(next.Next()) {
			a = next
		}
	}
	for ; network.Contains(a.Next()); a = a.Next() { // not the last one, IPv4's broadcast address
		if a != network.Masked().Addr() && !p.used[a] {
			p.used[a] = true
			return netip.PrefixFrom(a, network.Bits()), nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("network %v has no free address", network)
}
