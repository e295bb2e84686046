package v1alpha1

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
)

// Announce selects how the network finds the nodes that have the VIPs.
type Announce string

const (
	// AnnounceVRRP: keepalived elects a holder on the VIPs' subnet. The default.
	AnnounceVRRP Announce = "vrrp"
	// AnnounceBGP: each node that serves announces host routes to its routers.
	AnnounceBGP Announce = "bgp"
	// AnnounceTable: each node that serves keeps host routes in a routing table for a BGP
	// speaker that is there already.
	AnnounceTable Announce = "table"
)

// Routed reports whether VIPs are host routes of the nodes, which routers know, instead of
// addresses on a subnet of the nodes.
func (a Announce) Routed() bool { return a == AnnounceBGP || a == AnnounceTable }

// RoutedBy returns how routers learn of VIPs, by bgp or by table; "" where none are routed.
func (s *VIPConfigSpec) RoutedBy() Announce {
	_, by := s.RoutedIn()
	return by
}

// RoutedIn is RoutedBy with the first field that names it.
func (s *VIPConfigSpec) RoutedIn() (field string, by Announce) {
	for _, a := range append([]announce{{"spec.announce", s.Announce}}, s.announces()...) {
		if a.how.Routed() {
			return a.field, a.how
		}
	}
	return "", ""
}

// announces returns the values of sets of VIPs, with their fields.
func (s *VIPConfigSpec) announces() (out []announce) {
	for i, g := range s.AdditionalAPIVIPs {
		out = append(out, announce{fmt.Sprintf("spec.additionalAPIVIPs[%d].announce", i), g.Announce})
	}
	for i, g := range s.Ingress {
		out = append(out, announce{fmt.Sprintf("spec.ingress[%d].announce", i), g.Announce})
	}
	return out
}

// announce is a value of Announce, and its field.
type announce struct {
	field string
	how   Announce
}

// BGP configures the sessions of the nodes with their routers.
type BGP struct {
	// AS number of the nodes, 1 to 4294967295.
	LocalASN uint32 `json:"localASN,omitempty"`
	// The routers. A node has a session with each whose "nodes" selects it.
	Peers []BGPPeer `json:"peers,omitempty"`
	// Communities of every announced route, such as "64512:100".
	Communities []string `json:"communities,omitempty"`
	// false for routers without ECMP: the AS path of each node has another length, and routers
	// send all traffic of a VIP to the first one that serves, by name.
	ECMP *bool `json:"ecmp,omitempty"`
}

// OnePath reports whether nodes differ in preference also while all of them serve.
func (b *BGP) OnePath() bool { return b.ECMP != nil && !*b.ECMP }

// ByInterface reports whether there are sessions by interface.
func (b *BGP) ByInterface() bool {
	return slices.ContainsFunc(b.Peers, func(p BGPPeer) bool { return p.Interface != "" })
}

// BGPPeer is a router.
type BGPPeer struct {
	// Its address, IPv4 for the IPv4 VIPs, IPv6 for the IPv6 VIPs.
	Address netip.Addr `json:"address,omitzero"`
	// Instead of "address": interface of the nodes that leads to the router (unnumbered). They find it by its
	// router advertisements, and the session between IPv6 link-local addresses carries the VIPs of both families.
	Interface string `json:"interface,omitempty"`
	// true: the session with an IPv6 address carries the IPv4 VIPs as well, by way of the node's IPv6 address
	// (RFC 8950). The router needs the same.
	ExtendedNextHop bool `json:"extendedNextHop,omitempty"`
	// Its AS number.
	ASN uint32 `json:"asn"`
	// AS number of the nodes towards it, where that is not bgp.localASN.
	LocalASN uint32 `json:"localASN,omitempty"`
	// File on the nodes with the password of the sessions (TCP MD5), in /etc/vipgen/bgp.
	// vipgen never reads or writes it: it gets there as other secrets of the nodes do.
	PasswordFile string `json:"passwordFile,omitempty"`
	// BFD of the sessions, which notices that a node or a link is dead.
	BFD BFD `json:"bfd,omitzero"`
	// Most hops to the router, 2 to 255, where it is on no subnet of the nodes. There is
	// no BFD then.
	Multihop int `json:"multihop,omitempty"`
	// Accept packets of the session only if they come from the subnet (GTSM, RFC 5082).
	// The router needs the same.
	TTLSecurity bool `json:"ttlSecurity,omitempty"`
	// How long a silent session lasts, "3s" to "65535s" in whole seconds. "9s".
	HoldTime Duration `json:"holdTime,omitzero"`
	// Which nodes have a session with the router; all by default.
	Nodes BGPNodes `json:"nodes,omitzero"`
}

// BFD configures Bidirectional Forwarding Detection (RFC 5880).
type BFD struct {
	// false switches it off.
	Enabled *bool `json:"enabled,omitempty"`
	// Time between packets of each side, "10ms" to "60s". "50ms".
	Interval Duration `json:"interval,omitzero"`
	// Lost packets after which the other side counts as dead, 2 to 255. 3.
	Multiplier int `json:"multiplier,omitempty"`
}

// BGPNodes selects nodes: those that have one of the names, or an address in one of the
// subnets.
type BGPNodes struct {
	// Names of nodes, as in the Kubernetes API, or their first labels.
	Names []string `json:"names,omitempty"`
	// Subnets of nodes, such as that of a rack.
	Subnets []netip.Prefix `json:"subnets,omitempty"`
}

// Defaults of BGP peers.
const (
	BGPPort             = 179
	BFDPort             = 3784
	BFDInterval         = 50 * time.Millisecond
	BFDMultiplier       = 3
	BGPHoldTime         = 9 * time.Second
	BGPSecrets          = "/etc/vipgen/bgp"
	AnnounceTableNumber = 198
)

// BGPPasswordFile returns a file for the password of the sessions with a router, in BGPSecrets.
func BGPPasswordFile(router string) string {
	return BGPSecrets + "/" + strings.ReplaceAll(router, ":", "-")
}

// Default fills in the fields that a user left out.
func (b *BGP) Default() {
	b.Peers = slices.Clone(b.Peers) // may be shared with other clusters
	for i := range b.Peers {
		p := &b.Peers[i]
		if p.HoldTime == 0 {
			p.HoldTime = Duration(BGPHoldTime)
		}
		if p.BFD.Enabled == nil {
			on := p.Multihop == 0
			p.BFD.Enabled = &on
		}
		if *p.BFD.Enabled {
			if p.BFD.Interval == 0 {
				p.BFD.Interval = Duration(BFDInterval)
			}
			if p.BFD.Multiplier == 0 {
				p.BFD.Multiplier = BFDMultiplier
			}
		}
	}
}

// Local returns the AS number of the nodes towards a peer.
func (b *BGP) Local(p *BGPPeer) uint32 {
	if p.LocalASN != 0 {
		return p.LocalASN
	}
	return b.LocalASN
}

// Name returns the name of the router in texts: its address, or the interface that leads to it.
func (p *BGPPeer) Name() string {
	if p.Interface != "" {
		return p.Interface
	}
	return p.Address.String()
}

// Carries reports whether the session carries the routes of a VIP: those of its own address family, and
// IPv4 ones with an IPv6 next hop.
func (p *BGPPeer) Carries(vip netip.Addr) bool {
	return p.Interface != "" || vip.Is4() == p.Address.Is4() || p.ExtendedNextHop && vip.Is4()
}

// On reports whether the session has BFD.
func (b BFD) On() bool { return b.Enabled != nil && *b.Enabled }

// Selects reports whether the node with these addresses has a session with the router.
func (n *BGPNodes) Selects(name string, addresses []netip.Addr) bool {
	if len(n.Names) == 0 && len(n.Subnets) == 0 {
		return true
	}
	return slices.ContainsFunc(n.Names, func(s string) bool { return s == name || strings.HasPrefix(name, s+".") }) ||
		slices.ContainsFunc(addresses, func(a netip.Addr) bool { return InNetworks(n.Subnets, a) })
}

// PeersOf returns the routers with which a node has sessions.
func (b *BGP) PeersOf(name string, addresses []netip.Addr) []BGPPeer {
	return lists.Filter(b.Peers, func(p BGPPeer) bool { return p.Nodes.Selects(name, addresses) })
}
