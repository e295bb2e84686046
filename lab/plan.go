package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
)

// WithVRRP returns a copy of a cluster with other VRRP settings, in effect from the first packet.
func WithVRRP(c *render.Cluster, v v1alpha1.VRRPSettings) *render.Cluster {
	out, config := *c, *c.Config
	config.Spec.VRRP = v1alpha1.ClusterVRRP{Target: v}
	out.Config, out.ProfileReason = &config, ""
	return &out
}

// Machine is a planned machine of a lab.
type Machine struct {
	Name string
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one; empty
	// for a machine that is no node of the cluster.
	Role string
	// Addresses are the addresses of its interface, with their networks.
	Addresses []netip.Prefix
	// Gateway is the router of its subnet; none if it is not valid.
	Gateway netip.Addr
}

// Plan holds the machines of a lab.
type Plan struct {
	// Nodes are the cluster's nodes, control plane first, the bootstrap last.
	Nodes []Machine
	// Client sends requests to the VIPs from outside the cluster. Site runs the name server that
	// the nodes' network provides, and services that real clusters have elsewhere.
	Client, Site Machine
}

// PlanOptions selects the nodes of a lab.
type PlanOptions struct {
	// Counts has the number of nodes by role. A missing role has as many as the install-config, but
	// at most MaxWorkers workers for each ingress controller.
	Counts map[string]int
	// Bootstrap adds a bootstrap host.
	Bootstrap bool
}

// MaxWorkers is the default limit of workers for each ingress controller: further ones behave the
// same, and each costs processes of this machine. Routers of different controllers use the same
// ports, so each controller needs its own workers.
const MaxWorkers = 2

// maxNodes is the maximum number of nodes of a lab.
const maxNodes = 32

// NewPlan returns the machines for a lab of the cluster. Nodes of agent-config keep their names and
// addresses; others are named master-0, worker-0 and so on, and get the first free addresses of the
// machine networks. The error names the option that does not fit the cluster.
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

// ingressControllers returns the number of ingress controllers with VIPs.
func ingressControllers(c *render.Cluster) (n int) {
	for _, g := range c.Config.Spec.Groups {
		if g.Role == v1alpha1.GroupIngress {
			n++
		}
	}
	return n
}

// distinct returns an error if two machines have the same name or address. Agent-based
// installations have such machines: their rendezvous host is the bootstrap first and a node later.
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

// planner allocates addresses.
type planner struct {
	config *v1alpha1.ClusterConfig
	used   map[netip.Addr]bool
}

// firstHost is the number, in a network, of the first allocated address: lower ones are often a
// router's.
const firstHost = 10

// reserve excludes the addresses that the cluster uses.
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

// nodes returns n nodes of a pool: the known ones first.
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

// machine returns a machine with free addresses: one of each family, and one in each further
// network that holds VIPs. The bootstrap keeps its known addresses.
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
