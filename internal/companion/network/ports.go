package network

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/manifest"
)

// Protocols, as in nftables.
const (
	tcp   = "tcp"
	udp   = "udp"
	VRRP  = "vrrp" // vrrp.Protocol
	icmp6 = "ipv6-icmp"
)

// Rule is traffic that a node must accept.
type Rule struct {
	Role     string `json:"role"`
	Protocol string `json:"protocol"`
	// Port is 0 for a protocol without ports.
	Port int `json:"port,omitempty"`
	// From is the sender; Networks are its networks, empty if unknown.
	From     string         `json:"from"`
	Networks []netip.Prefix `json:"networks,omitempty"`
	// To are the destination addresses, empty for the node's own and its VIPs.
	To []netip.Addr `json:"to,omitempty"`
	// For is the listener and its purpose.
	For string `json:"for"`
}

var (
	vrrpGroups = []netip.Addr{vrrp.MulticastGroup4, vrrp.MulticastGroup6}
	mdnsGroups = []netip.Addr{v1alpha1.MDNSGroup4, v1alpha1.MDNSGroup6}
)

// Senders.
const (
	anybody  = "clients"
	nodes    = "nodes"
	here     = "this node and its pods"
	neighbor = "nodes on the link"
	balancer = "the load balancer"
)

// Rules returns the rules of the nodes of a role, by protocol and port. Loopback is not among
// them, nor are the ports of other programs: Kubernetes' own rules stay.
func Rules(c *render.Cluster, role string) []Rule {
	s := &c.Config.Spec
	b := builder{role: role, networks: known(s)}
	pods := c.Pods(role)
	has := func(name string) bool { return slices.Contains(pods, name) }
	clients := anybody
	if s.LoadBalancer == v1alpha1.LoadBalancerExternal {
		clients = balancer
	}
	if role == v1alpha1.RoleMaster || role == v1alpha1.RoleBootstrap {
		b.add(tcp, s.Ports.API, clients, nil, "the API server")
		b.add(tcp, s.Ports.MachineConfig, clients, nil, "the machine config server")
	}
	if role == v1alpha1.RoleBootstrap && s.Platform == "baremetal" {
		b.add(tcp, s.Ports.Ironic, nodes, nil, "the provisioning service")
	}
	if has(manifest.HAProxy) && v1alpha1.ControlPlaneRole(role) { // elsewhere on loopback
		b.add(tcp, s.Ports.HAProxy, anybody, nil, "haproxy: the API VIP's port is redirected here")
	}
	if has(manifest.CoreDNS) {
		from := here
		if slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool { return g.Role == v1alpha1.GroupDNS && s.Hosts(&g, role, nil) }) {
			from = anybody
		}
		b.add(udp, v1alpha1.DNSPort, from, nil, "coredns")
		b.add(tcp, v1alpha1.DNSPort, from, nil, "coredns")
	}
	if has(manifest.MDNS) {
		b.add(udp, v1alpha1.MDNSPort, neighbor, mdnsGroups, "mdns-publisher")
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if !s.Hosts(g, role, nil) {
			continue
		}
		if g.Role == v1alpha1.GroupIngress {
			b.add(tcp, v1alpha1.HTTPPort, clients, nil, "the router")
			b.add(tcp, v1alpha1.HTTPSPort, clients, nil, "the router")
			if s.LoadBalancer == v1alpha1.LoadBalancerExternal {
				b.add(tcp, cmp.Or(g.HealthPort, s.Ports.RouterHealth), balancer, nil, "the router's health")
			}
		}
		if has(manifest.BGP) && s.AnnounceOf(g) == v1alpha1.AnnounceBGP {
			b.routers(s.BGP.Peers)
		}
		if has(manifest.Keepalived) && !s.AnnounceOf(g).Routed() {
			b.vrrp(s.VRRP)
			if s.VRRP.Target.Mode != v1alpha1.ModeMulticast {
				b.add(tcp, v1alpha1.ClientsPort, nodes, nil, "keepalived's agent: lists of the VIPs' clients")
			}
		}
	}
	if s.Metrics == v1alpha1.MetricsOnNode && role != v1alpha1.RoleBootstrap {
		for _, m := range c.Monitored(role) {
			b.add(tcp, m.Port, nodes, nil, "metrics of "+m.Container+", for Prometheus")
		}
	}
	slices.SortStableFunc(b.rules, func(x, y Rule) int {
		return cmp.Or(cmp.Compare(x.Protocol, y.Protocol), cmp.Compare(x.Port, y.Port))
	})
	return b.rules
}

// known returns the machine networks, if these are the nodes': VIPs outside of them show that
// nodes may be elsewhere (hard case 44).
func known(s *v1alpha1.ClusterConfigSpec) []netip.Prefix {
	if len(s.VIPsOutside()) > 0 {
		return nil
	}
	return s.MachineNetworks
}

type builder struct {
	role     string
	networks []netip.Prefix
	rules    []Rule
}

func (b *builder) add(protocol string, port int, from string, to []netip.Addr, what string) {
	r := Rule{Role: b.role, Protocol: protocol, Port: port, From: from, To: to, For: what}
	if from == nodes {
		r.Networks = b.networks
	}
	same := func(x Rule) bool {
		return x.Protocol == protocol && x.Port == port && x.From == from && slices.Equal(x.To, to)
	}
	if !slices.ContainsFunc(b.rules, same) {
		b.rules = append(b.rules, r)
	}
}

func (b *builder) routers(list []v1alpha1.BGPPeer) {
	for i := range list {
		if list[i].BFD.On() {
			b.add(udp, v1alpha1.BFDPort, neighbor, nil, "BFD of the routers; nodes open the BGP sessions themselves")
		}
		if list[i].Interface != "" {
			b.add(icmp6, 0, neighbor, nil, "router advertisements and solicitations, for sessions by interface")
		}
	}
}

// vrrp accepts the packets of the initial settings and of those that nodes migrate to.
func (b *builder) vrrp(v v1alpha1.ClusterVRRP) {
	for _, settings := range []v1alpha1.VRRPSettings{v.Initial(), v.Target} {
		if settings.Mode == v1alpha1.ModeMulticast {
			b.add(VRRP, 0, neighbor, vrrpGroups, "keepalived, by multicast")
		} else {
			b.add(VRRP, 0, nodes, nil, "keepalived, by unicast")
		}
	}
}
