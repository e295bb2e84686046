package network

import (
	"embed"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// RouterKinds are the programs of routers.
var RouterKinds = []string{"frr", "bird"}

// Router is the side of a router of its sessions with the nodes.
type Router struct {
	Cluster string     `json:"cluster"`
	Address netip.Addr `json:"address,omitzero"`
	// Interface is the nodes' interface that leads to it, instead of an address.
	Interface string `json:"interface,omitempty"`
	ASN       uint32 `json:"asn"`
	// NodeASN is the AS number of the nodes.
	NodeASN uint32 `json:"nodeASN"`
	// Nodes are the known addresses of nodes; empty where the input has none.
	Nodes []netip.Addr `json:"nodes,omitempty"`
	// Subnets are the subnets of nodes.
	Subnets []netip.Prefix `json:"subnets,omitempty"`
	// VIPs holds the VIPs that the sessions carry.
	VIPs []netip.Addr `json:"vips"`
	// Password reports that the sessions have one, which vipgen does not know.
	Password bool `json:"password,omitempty"`
	Multihop int  `json:"multihop,omitempty"`
	// NextHop6 reports that the sessions carry IPv4 VIPs over IPv6.
	NextHop6    bool `json:"extendedNextHop,omitempty"`
	TTLSecurity bool `json:"ttlSecurity,omitempty"`
	// BFDMS is the time between packets of BFD, BFDMultiplier how many may be lost; 0 without
	// BFD.
	BFDMS         int `json:"bfdMS,omitempty"`
	BFDMultiplier int `json:"bfdMultiplier,omitempty"`
}

// Family is an address family of the VIPs that sessions carry.
type Family struct {
	// Name is ipv4 or ipv6, V the word ip or ipv6 of FRR's commands.
	Name, V string
	Routes  []netip.Prefix
	// Own reports that the sessions are of this family, too; else next hops are.
	Own bool
}

// Families returns the families with VIPs, by name.
func (r *Router) Families() (out []Family) {
	for _, f := range []Family{{Name: "ipv4", V: "ip"}, {Name: "ipv6", V: "ipv6"}} {
		for _, vip := range r.VIPs {
			if vip.Is4() == (f.Name == "ipv4") {
				f.Routes = append(f.Routes, netip.PrefixFrom(vip, vip.BitLen()))
				f.Own = vip.Is4() == r.Address.Is4()
			}
		}
		if len(f.Routes) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// Name returns what the router is called.
func (r *Router) Name() string {
	if r.Interface != "" {
		return "Router at " + r.Interface + " of the nodes"
	}
	return r.Address.String()
}

// Single reports whether the sessions are in one AS.
func (r *Router) Single() bool { return r.ASN == r.NodeASN }

// Routers returns the routers of a cluster; only the one with that address, or at that interface, unless it
// is empty.
func Routers(c *render.Cluster, only string) (out []Router, err error) {
	s := c.Config.Spec.Announced()
	if s.RoutedBy() != v1alpha1.AnnounceBGP {
		return nil, fmt.Errorf("the nodes of %s have no BGP sessions: announce: bgp in vipgen.yaml gives them some", c.Config.Metadata.Name)
	}
	for i := range s.BGP.Peers {
		p := &s.BGP.Peers[i]
		if only != "" && p.Name() != only {
			continue
		}
		r := Router{Cluster: c.Config.Metadata.Name, Address: p.Address, Interface: p.Interface, ASN: p.ASN, NodeASN: s.BGP.Local(p), Password: p.PasswordFile != "",
			Multihop: p.Multihop, TTLSecurity: p.TTLSecurity, NextHop6: p.ExtendedNextHop}
		if p.BFD.On() {
			r.BFDMS, r.BFDMultiplier = int(time.Duration(p.BFD.Interval)/time.Millisecond), p.BFD.Multiplier
		}
		family := func(a netip.Addr) bool { return a.Is4() == p.Address.Is4() }
		for _, g := range s.Groups {
			r.VIPs = append(r.VIPs, lists.Filter(g.VIPs, p.Carries)...)
		}
		for _, n := range s.Peers {
			if p.Interface == "" && announces(s, &n) && p.Nodes.Selects(n.Name, n.Addresses) {
				r.Nodes = append(r.Nodes, lists.Filter(n.Addresses, family)...)
			}
		}
		subnets := p.Nodes.Subnets
		if len(subnets) == 0 {
			subnets = s.MachineNetworks
		}
		if p.Interface != "" {
			subnets = []netip.Prefix{netip.MustParsePrefix("fe80::/10")}
		}
		for _, n := range subnets {
			if family(n.Addr()) {
				r.Subnets = append(r.Subnets, n)
			}
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no router %s in spec.bgp.peers", only)
	}
	return out, nil
}

// announces reports whether a node can announce a VIP.
func announces(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Peer) bool {
	return slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool { return s.Hosts(&g, n.Role, n.Labels) })
}

// Conf returns the configuration of a router for one of RouterKinds.
func (r *Router) Conf(kind string) ([]byte, error) { return parsed.Run(kind+".conf", r) }
