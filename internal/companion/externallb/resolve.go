package externallb

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

// Load plans the load balancer of a cluster. The list has every problem and warning of the
// files and of the options; the plan is nil if one of them is an error. Problems of options
// have fields named like flags.
func Load(s render.Sources, o render.Options, x Options) (*Plan, problem.List) {
	in, list := render.Read(s)
	if in == nil {
		return nil, list
	}
	lent := x.lend(in)
	c, list, _ := in.Load(list, o)
	// The planned load balancer can hold the VIP meanwhile.
	list = slices.DeleteFunc(list, func(p problem.Problem) bool { return p.Code == problem.RendezvousVIP })
	for i := range list {
		if flag := lent[list[i].Field]; flag != "" {
			list[i].File, list[i].Line, list[i].Column, list[i].Field = "", 0, 0, flag
		}
	}
	r := &resolver{in: in, x: x, c: c, Report: problem.Report{Locate: in.Locate}}
	r.options()
	if c != nil {
		r.vips()
		r.nodes()
		r.networks()
		r.pair()
	}
	list = append(list, r.List...).Final()
	if list.Err() != nil {
		return nil, list
	}
	return r.plan(), list
}

// lend copies the load balancer's addresses to an input without VIPs, such as platform none
// without a vipgen.yaml. It returns the flags of the fields that it filled in.
func (x *Options) lend(in *render.Input) map[string]string {
	lent := map[string]string{}
	fill := func(to *[]netip.Addr, have int, list []netip.Addr, field, flag string) {
		if have > 0 || len(*to) > 0 || len(list) == 0 {
			return
		}
		*to = list
		in.VIP.Spec.LoadBalancer.Type = v1alpha1.LoadBalancerExternal
		lent[field] = flag
		for i := range list {
			lent[fmt.Sprintf("%s[%d]", field, i)] = flag
		}
	}
	if assets.PlatformNamed(in.Install.Platform).Bare() {
		fill(&in.VIP.Spec.APIVIPs, len(in.Install.APIVIPs), x.APIVIPs, "spec.apiVIPs", "--api-vip")
		fill(&in.VIP.Spec.IngressVIPs, len(in.Install.IngressVIPs), x.IngressVIPs, "spec.ingressVIPs", "--ingress-vip")
	}
	return lent
}

type resolver struct {
	in *render.Input
	x  Options
	c  *render.Cluster
	problem.Report

	groups []group
	peers  []v1alpha1.Peer
	hosts  []Host
}

// group is a set of VIPs of the load balancer with its backends.
type group struct {
	*v1alpha1.Group
	vips []netip.Addr
}

// vips collects the load balancer's own addresses: those of the flags, else those of the input
// where an external load balancer holds them.
func (r *resolver) vips() {
	external := r.c.Config.Spec.LoadBalancer == v1alpha1.LoadBalancerExternal
	given := func(g *v1alpha1.Group) []netip.Addr {
		switch {
		case g.Name == v1alpha1.FirstAPI && len(r.x.APIVIPs) > 0:
			return r.x.APIVIPs
		case g.Role == v1alpha1.GroupIngress && g.SharedWithOperator() && len(r.x.IngressVIPs) > 0:
			return r.x.IngressVIPs
		case external:
			return g.VIPs
		}
		return nil
	}
	for i := range r.c.Config.Spec.Groups {
		g := &r.c.Config.Spec.Groups[i]
		if g.Role == v1alpha1.GroupDNS || !r.x.serves(serviceOf(g)) {
			continue
		}
		if !external && !g.SharedWithOperator() {
			continue // the cluster's nodes hold its VIPs
		}
		r.groups = append(r.groups, group{g, given(g)})
	}
	r.checkVIPs(external)
}

func serviceOf(g *v1alpha1.Group) string {
	if g.Role == v1alpha1.GroupIngress {
		return serveIngress
	}
	return serveAPI
}

func (x *Options) serves(what string) bool {
	return len(x.Serve) == 0 || slices.Contains(x.Serve, what)
}

func (r *resolver) nodes() {
	known := r.c.Config.Spec.Peers
	named := func(list []v1alpha1.Peer, name string) int {
		return slices.IndexFunc(list, func(p v1alpha1.Peer) bool { return p.Name == name })
	}
	for _, n := range r.x.Nodes {
		role := cmp.Or(n.Role, v1alpha1.RoleMaster)
		if i := named(known, n.Name); i >= 0 {
			role = cmp.Or(n.Role, known[i].Role)
		}
		r.peers = append(r.peers, v1alpha1.Peer{Name: n.Name, Role: role, Addresses: n.Addresses})
	}
	r.peers = append(r.peers, lists.Filter(known, func(p v1alpha1.Peer) bool { return named(r.x.Nodes, p.Name) < 0 })...)
	all := slices.Clone(r.peers)
	r.peers = slices.DeleteFunc(r.peers, func(p v1alpha1.Peer) bool {
		return p.Role == v1alpha1.RoleBootstrap && (r.x.BootstrapGone || isNode(all, p.Addresses))
	})
	slices.SortFunc(r.peers, func(a, b v1alpha1.Peer) int { return cmp.Compare(a.Name, b.Name) })
	r.checkNodes()
}

// isNode reports whether a node has one of the addresses: a rendezvous host bootstraps the
// cluster and is one of its nodes later.
func isNode(all []v1alpha1.Peer, list []netip.Addr) bool {
	return slices.ContainsFunc(all, func(p v1alpha1.Peer) bool {
		return p.Role != v1alpha1.RoleBootstrap && slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool { return slices.Contains(list, a) })
	})
}

// address returns the address at which the load balancer reaches a node: of the cluster's
// primary family, in a network of the nodes if it has one there.
func (r *resolver) address(p v1alpha1.Peer) netip.Addr {
	networks := r.c.Config.Spec.AssumedNetworks()
	rank := func(a netip.Addr) int {
		for i, n := range networks {
			if n.Contains(a) {
				return i
			}
		}
		if len(networks) > 0 && a.Is4() == networks[0].Addr().Is4() {
			return len(networks)
		}
		return len(networks) + 1
	}
	return slices.MinFunc(p.Addresses, func(a, b netip.Addr) int { return cmp.Compare(rank(a), rank(b)) })
}

// behind returns the hosts of the cluster that serve a group. API servers and machine config
// servers are on the control plane, at first on the bootstrap host; an arbiter has neither.
func (r *resolver) behind(g *v1alpha1.Group) []v1alpha1.Peer {
	var out []v1alpha1.Peer
	for _, p := range r.peers {
		serves := p.Role == v1alpha1.RoleMaster || p.Role == v1alpha1.RoleBootstrap
		if g.Role == v1alpha1.GroupIngress {
			serves = r.c.Config.Spec.Hosts(g, p.Role, p.Labels) && !r.claimed(g, p)
		}
		if serves {
			out = append(out, p)
		}
	}
	return out
}

// claimed reports whether a node that could run routers of the default controller belongs to
// another one with its own node selector: only one router can use the ports of a node, and the
// other's would get connections for the wrong domain.
func (r *resolver) claimed(g *v1alpha1.Group, p v1alpha1.Peer) bool {
	if g.Controller != v1alpha1.DefaultIngress {
		return false
	}
	return slices.ContainsFunc(r.c.Config.Spec.Groups, func(other v1alpha1.Group) bool {
		return other.Role == v1alpha1.GroupIngress && other.Controller != g.Controller &&
			!maps.Equal(other.NodeSelector, g.NodeSelector) && r.c.Config.Spec.Hosts(&other, p.Role, p.Labels)
	})
}

func (r *resolver) plan() *Plan {
	ports := r.c.Config.Spec.Ports
	p := &Plan{Cluster: r.c.Config.Spec.Domain, Pair: r.hosts, images: r.c.Images}
	add := func(name string, port int, only []netip.Prefix, backends []Backend) {
		if len(backends) > 0 {
			p.Services = append(p.Services, Service{Name: name, Port: port, Only: only, Backends: backends})
		}
	}
	api := v1alpha1.Group{Role: v1alpha1.GroupAPI}
	if r.x.serves(serveAPI) {
		add(serveAPI, ports.API, nil, []Backend{r.backend(serveAPI, &api, ports.API, Check{Path: "/readyz", TLS: true})})
	}
	if r.x.serves(serveMachineConfig) {
		add(serveMachineConfig, ports.MachineConfig, r.clusterHosts(),
			[]Backend{r.backend(serveMachineConfig, &api, ports.MachineConfig, Check{Path: "/healthz", TLS: true})})
	}
	add("ingress-https", v1alpha1.HTTPSPort, nil, r.routers("https", v1alpha1.HTTPSPort))
	add("ingress-http", v1alpha1.HTTPPort, nil, r.routers("http", v1alpha1.HTTPPort))
	p.DNS = r.names()
	p.proxy = r.proxy(p.Services)
	return p
}

// routers returns the routers of every ingress controller, at a port, the default one first.
func (r *resolver) routers(protocol string, port int) []Backend {
	var out []Backend
	for _, g := range r.groups {
		if g.Role != v1alpha1.GroupIngress {
			continue
		}
		b := r.backend(g.Name+"-"+protocol, g.Group, port, Check{Path: "/healthz/ready", Port: g.HealthPort})
		b.Sticky = true
		if g.SharedWithOperator() {
			out = slices.Insert(out, 0, b)
			continue
		}
		b.VIPs = g.vips
		out = append(out, b)
	}
	return out
}

func (r *resolver) backend(name string, g *v1alpha1.Group, port int, check Check) Backend {
	b := Backend{Name: name, Check: check}
	for _, p := range r.behind(g) {
		b.Servers = append(b.Servers, Server{Name: p.Name, Address: netip.AddrPortFrom(r.address(p), uint16(port))})
	}
	return b
}

// clusterHosts returns the networks that may read machine configs.
func (r *resolver) clusterHosts() []netip.Prefix {
	out := append(r.c.Config.Spec.AssumedNetworks(), r.x.Allow...)
	slices.SortFunc(out, func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()), a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(out)
}

// names returns the names that must lead to the load balancer.
func (r *resolver) names() []Name {
	out := []Name{}
	for _, g := range r.groups {
		vips := append([]netip.Addr{}, g.vips...)
		if g.Role == v1alpha1.GroupAPI {
			out = append(out, lists.Map(r.c.Config.Spec.APINames(g.Group), func(name string) Name { return Name{name, vips} })...)
		}
		out = append(out, lists.Map(g.Domains, func(d string) Name { return Name{"*." + d, vips} })...)
	}
	return out
}

// proxy listens on the families of the VIPs, or, without known ones, on those of the machine
// networks.
func (r *resolver) proxy(services []Service) Proxy {
	p := Proxy{Cluster: r.c.Config.Spec.Domain, ReadyPort: r.c.Config.Spec.Ports.HAProxyReady, Services: services}
	for _, a := range r.allVIPs() {
		p.IPv4, p.IPv6 = p.IPv4 || a.Is4(), p.IPv6 || a.Is6()
	}
	if p.IPv4 || p.IPv6 {
		return p
	}
	for _, n := range r.c.Config.Spec.MachineNetworks {
		p.IPv4, p.IPv6 = p.IPv4 || n.Addr().Is4(), p.IPv6 || n.Addr().Is6()
	}
	return p
}

// allVIPs returns all addresses of the load balancer, each once, IPv4 first.
func (r *resolver) allVIPs() []netip.Addr {
	out := lists.FlatMap(r.groups, func(g group) []netip.Addr { return g.vips })
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// The priorities of a pair are equal: the one that can serve wins, and a host that returns
// does not preempt the other.
const (
	priority = 100
	points   = 20
)

func (r *resolver) keepalived(self, other Balancer, id int) Keepalived {
	k := Keepalived{
		Cluster: r.c.Config.Spec.Domain, Host: self.Name, Priority: priority, Points: points,
		ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/ready", r.c.Config.Spec.Ports.HAProxyReady),
	}
	for _, family := range []struct {
		name string
		is   func(netip.Addr) bool
	}{{"4", netip.Addr.Is4}, {"6", netip.Addr.Is6}} {
		inst := Instance{
			Name: r.c.Config.Metadata.Name + "_LB_" + family.name, Interface: r.x.Interface, RouterID: id,
			AdvertInterval: vrrp.Seconds(v1alpha1.FastIntervalMS),
			Source:         own(self, family.is), Peer: own(other, family.is),
		}
		for _, vip := range r.allVIPs() {
			if family.is(vip) {
				inst.VIPs = append(inst.VIPs, netip.PrefixFrom(vip, vip.BitLen()))
			}
		}
		if len(inst.VIPs) > 0 {
			k.Instances = append(k.Instances, inst)
		}
	}
	if len(k.Instances) > 1 {
		k.Group = r.c.Config.Metadata.Name + "_LB"
	}
	return k
}

// own returns a balancer's address of a family, or the zero value.
func own(b Balancer, is func(netip.Addr) bool) netip.Addr {
	for _, p := range b.Addresses {
		if is(p.Addr()) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}
