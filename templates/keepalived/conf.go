// Package keepalived makes keepalived.conf of a node from ClusterConfig and
// Node.
package keepalived

import (
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates"
)

// Template is the node template, as it is shipped.
//
//go:embed keepalived.conf.tmpl
var Template string

// Conf is what the template is executed with.
type Conf struct {
	Cluster string
	Node    string
	// Idle says, a line each, why VIPs of this node's role are left out.
	Idle []string
	// TrackFiles are those that Instances and SyncGroups name.
	TrackFiles []TrackFile
	SyncGroups []SyncGroup
	Instances  []Instance
	// QuietGroups are, by address family ("4", "6"), the multicast groups of instances
	// in unicast mode that have no peers: those that have peers use none, and a node
	// does not mix modes. keepalived 2.1 knows no group of one instance.
	QuietGroups map[string]string
}

// TrackFile is a file that keepalived watches.
type TrackFile struct {
	vrrp.Term
	Path string
}

// SyncGroup holds instances that change state together, with the checks of all
// of them (hard case 14).
type SyncGroup struct {
	Name    string
	Members []string
	Terms   []vrrp.Term
}

// Instance is one VRRP instance: one VIP of one group.
type Instance struct {
	Name      string
	Version   int
	Interface string
	RouterID  int
	Priority  int
	// AdvertInterval is in seconds, such as "0.1".
	AdvertInterval string
	// Password is at most 8 bytes; empty for VRRPv3.
	Password string
	// Source and Peers are set in unicast mode with at least one peer.
	Source netip.Addr
	Peers  []netip.Addr
	// FullTTL sends adverts with TTL 255, and OnLink takes none that have less, so
	// that they come from this link (as RFC 9568 section 5.1.1.3 wants of
	// multicast), and from a peer. What the operator's own keepalived sends depends
	// on its version and on the family, so the classic profile does without.
	FullTTL, OnLink bool
	// AllKnown says that everybody who may send adverts is a node that is known.
	AllKnown bool
	// QuietGroup is a multicast address that no other cluster listens to. It is
	// set in unicast mode without peers, where keepalived would send its adverts
	// to the VRRP multicast group that everybody shares.
	QuietGroup string
	// VIP has a host prefix, so that the kernel does not choose it as the source
	// of the node's own connections.
	VIP netip.Prefix
	// Label is that of an IPv4 VIP's address. IPv6 addresses have none in the kernel:
	// those of a host prefix are deprecated at once, which says as much.
	Label string
	Terms []vrrp.Term
}

// Interval is the time between two adverts; 0 if AdvertInterval is no number.
func (i *Instance) Interval() time.Duration {
	d, err := time.ParseDuration(i.AdvertInterval + "s")
	if err != nil {
		return 0
	}
	return d
}

// Addresses set aside for experiments, link scope (RFC 4727 sections 2.4.1 and
// 3.4): adverts of a lone holder must go somewhere.
const (
	quietGroup4 = "224.0.0.254"
	quietGroup6 = "ff02::114"
)

// New works out what a node runs. An empty Instances means that keepalived has
// nothing to do here; Idle says why.
func New(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) *Conf {
	k := &Conf{Cluster: c.Metadata.Name, Node: n.Name}
	if c.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		k.Idle = []string{"the nodes hold no VIPs: the load balancer is " + string(c.Spec.LoadBalancer)}
		return k
	}
	for i := range c.Spec.Groups {
		k.add(&c.Spec, n, &c.Spec.Groups[i])
	}
	return k
}

// Render executes a node template, the shipped one or the one on the node.
func Render(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error) {
	return templates.Execute("keepalived.conf.tmpl", text, New(c, n))
}

func (k *Conf) add(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group) {
	if !s.Hosts(g, n.Role, n.Labels) {
		if n.Role == v1alpha1.RoleArbiter && g.Role != v1alpha1.GroupIngress {
			k.Idle = append(k.Idle, g.Name+": OpenShift's own keepalived does not know arbiters") // hard case 32
		}
		return
	}
	peers := peersOf(s, n, g)
	if why := staysOut(s, n, g, peers); why != "" {
		k.Idle = append(k.Idle, g.Name+": "+why)
		return
	}
	base, terms := vrrp.Terms(g, n.Role)
	settings := s.VRRP.Initial()
	if n.VRRP != nil {
		settings = *n.VRRP
	}
	var instances []Instance
	for i, vip := range g.VIPs {
		bind, ok := n.Bind(vip)
		if !ok {
			k.Idle = append(k.Idle, fmt.Sprintf("%s: no address of the family of %s on this node", g.Name, vip))
			continue
		}
		heard, why := near(s, n, g, bind, vip, peers, settings.Mode)
		if why != "" {
			k.Idle = append(k.Idle, g.Name+": "+why)
			continue
		}
		inst := Instance{
			Name:      fmt.Sprintf("%s_%d", g.Instance, i),
			Interface: bind.Interface,
			RouterID:  g.VirtualRouterID,
			Priority:  base,
			VIP:       netip.PrefixFrom(vip, vip.BitLen()),
			Terms:     terms,
		}
		if vip.Is4() {
			inst.Label = v1alpha1.VIPLabel
		}
		inst.speak(settings, g, bind, heard, allKnown(s, n, g, bind, heard))
		instances = append(instances, inst)
	}
	if len(instances) == 0 || g.Together && len(instances) < len(g.VIPs) {
		return
	}
	for _, t := range terms {
		k.TrackFiles = append(k.TrackFiles, TrackFile{Term: t, Path: v1alpha1.TrackDir + "/" + t.Name})
	}
	if g.Together && len(instances) > 1 {
		k.SyncGroups = append(k.SyncGroups, syncGroup(g, instances, terms))
	}
	k.Instances = append(k.Instances, instances...)
	for _, i := range instances {
		if i.QuietGroup == "" {
			continue
		}
		if k.QuietGroups == nil {
			k.QuietGroups = map[string]string{}
		}
		k.QuietGroups[i.family()] = i.QuietGroup
	}
}

// family is "4" or "6", as keepalived's keywords have it.
func (i *Instance) family() string {
	if i.VIP.Addr().Is4() {
		return "4"
	}
	return "6"
}

// syncGroup ties instances together and takes their checks to itself: keepalived
// ignores weights of members.
func syncGroup(g *v1alpha1.Group, instances []Instance, terms []vrrp.Term) SyncGroup {
	out := SyncGroup{Name: g.Instance, Terms: terms}
	for i := range instances {
		out.Members = append(out.Members, instances[i].Name)
		instances[i].Terms = nil
	}
	return out
}

// speak fills in the way of electing. known says that everybody who may send
// adverts is a peer.
func (i *Instance) speak(v v1alpha1.VRRPSettings, g *v1alpha1.Group, bind v1alpha1.Binding, peers []v1alpha1.Peer, known bool) {
	i.Version, i.AllKnown = v.Version, known
	if i.VIP.Addr().Is6() {
		i.Version = 3
	}
	if i.Version == 2 {
		i.Password = g.Password
	}
	interval := v.AdvertIntervalMS
	if v.Mode != v1alpha1.ModeMulticast {
		i.unicast(bind, peers)
		i.FullTTL = v.Profile != v1alpha1.ProfileClassic
		i.OnLink = i.FullTTL && known
		interval = vrrp.PacedInterval(interval, len(i.Peers)*len(g.VIPs), i.Version)
	}
	i.AdvertInterval = seconds(interval)
}

// unicast fills in where adverts go.
func (i *Instance) unicast(bind v1alpha1.Binding, peers []v1alpha1.Peer) {
	for _, p := range peers {
		if a, ok := p.AddressFor(bind); ok && a != bind.Source.Addr() {
			i.Peers = append(i.Peers, a)
		}
	}
	slices.SortFunc(i.Peers, netip.Addr.Compare)
	i.Peers = slices.Compact(i.Peers)
	switch {
	case len(i.Peers) > 0:
		i.Source = bind.Source.Addr()
	case bind.Source.Addr().Is4():
		i.QuietGroup = quietGroup4
	default:
		i.QuietGroup = quietGroup6
	}
}

// allKnown says whether everybody who may send adverts is among the peers. The
// bootstrap knows the control plane, but the control plane may not know the
// address of the bootstrap, or knows that of one family alone, which is all that
// the etcd operator tells, and must hear it all the same.
func allKnown(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, bind v1alpha1.Binding, peers []v1alpha1.Peer) bool {
	return !s.Hosts(g, v1alpha1.RoleBootstrap, nil) || n.Role == v1alpha1.RoleBootstrap || n.BootstrapGone ||
		slices.ContainsFunc(peers, func(p v1alpha1.Peer) bool {
			_, known := p.AddressFor(bind)
			return known && p.Role == v1alpha1.RoleBootstrap
		})
}

// peersOf are the other nodes that can hold the group's VIPs.
func peersOf(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group) []v1alpha1.Peer {
	var out []v1alpha1.Peer
	for _, p := range n.Peers {
		if p.Name != n.Name && s.Hosts(g, p.Role, p.Labels) {
			out = append(out, p)
		}
	}
	return out
}

// staysOut says why a node must not take part, or nothing.
func staysOut(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, peers []v1alpha1.Peer) string {
	if g.Together && slices.ContainsFunc(g.VIPs, func(vip netip.Addr) bool { _, ok := n.Bind(vip); return !ok }) {
		// One VIP here would keep the other nodes from holding either: hard case 14.
		return "the VIPs move together, and this node has no address of one of their families"
	}
	if n.Role == v1alpha1.RoleBootstrap {
		return ""
	}
	if n.Unregistered {
		return "this node is not registered with the cluster" // hard case 3
	}
	// A bootstrap that is gone still hears this node, as long as it holds the VIP,
	// and is no company.
	gone := func(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleBootstrap && n.BootstrapGone }
	lone := !slices.ContainsFunc(peers, func(p v1alpha1.Peer) bool { return !gone(p) })
	if g.Role == v1alpha1.GroupIngress || !lone || s.ControlPlane.Replicas == 1 {
		return ""
	}
	// Hard case 13: with two control-plane nodes one may be alone for a while,
	// and is the only one that can serve, once the bootstrap has gone.
	if s.ControlPlane.Replicas == 2 && n.BootstrapGone {
		return ""
	}
	return "no other control-plane node is known" // hard case 2
}

// near are the peers that hear a node at a VIP in another network than that of the first
// API VIPs, or why the node must not take part: it would not be heard, and both sides
// would hold the VIP. That is so where others have an address in the VIP's network and
// this node has none, and in unicast mode where none of theirs is known. Where nobody has
// one, the VIP is where all others are (hard case 11).
//
// Workers say themselves which addresses they have. So what they say pushes no other node
// out of an ingress group, nor into one, where it would hear nobody else (hard case 39): a
// node goes by its own address in the VIP's network, and by being listed at it.
func near(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, bind v1alpha1.Binding, vip netip.Addr, peers []v1alpha1.Peer, mode v1alpha1.Mode) (heard []v1alpha1.Peer, why string) {
	if g.Name == v1alpha1.FirstAPI || len(peers) == 0 {
		return peers, ""
	}
	networks := s.NodeNetworks(n.Interfaces)
	within := func(a netip.Addr) bool {
		return bind.Source.Contains(vip) && bind.Source.Contains(a) ||
			slices.ContainsFunc(networks, func(m netip.Prefix) bool { return m.Contains(vip) && m.Contains(a) })
	}
	for _, p := range peers {
		if slices.ContainsFunc(p.Addresses, within) || slices.ContainsFunc(p.Elsewhere, within) {
			heard = append(heard, p)
		}
	}
	ingress, unicast := g.Role == v1alpha1.GroupIngress, mode != v1alpha1.ModeMulticast && !sharesFirst(s, n, bind)
	switch here := within(bind.Source.Addr()); {
	case !here && ingress && nodesAreIn(s, n, vip, within):
		return nil, fmt.Sprintf("this node has no address in the network of %s", vip)
	case !here && ingress:
		return peers, ""
	case here && ingress && unicast && n.Listed != nil && !slices.ContainsFunc(n.Listed, within):
		return nil, fmt.Sprintf("the other nodes do not know this node's address in the network of %s", vip)
	case here && len(heard) > 0:
		return heard, ""
	case !here && len(heard) > 0:
		return nil, fmt.Sprintf("other nodes have addresses in the network of %s, and this node has none", vip)
	case here && unicast:
		return nil, fmt.Sprintf("no other node's address in the network of %s is known", vip)
	}
	return peers, ""
}

// nodesAreIn says, whatever workers claim, whether there are nodes in the network of a VIP:
// the control plane is, or the cluster has several machine networks of its family, of which
// it is one. A single one may be none of any node (hard case 11).
func nodesAreIn(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, vip netip.Addr, within func(netip.Addr) bool) bool {
	family, holds := 0, false
	for _, m := range s.MachineNetworks {
		if m.Addr().Is4() == vip.Is4() {
			family++
			holds = holds || m.Contains(vip)
		}
	}
	return holds && family > 1 || slices.ContainsFunc(n.Peers, func(p v1alpha1.Peer) bool {
		return (p.Role == v1alpha1.RoleMaster || p.Role == v1alpha1.RoleArbiter) && slices.ContainsFunc(p.Addresses, within)
	})
}

// sharesFirst says whether a VIP's place on a node is that of a first API VIP, too.
func sharesFirst(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, bind v1alpha1.Binding) bool {
	return slices.ContainsFunc(s.Groups[0].VIPs, func(first netip.Addr) bool {
		b, ok := n.Bind(first)
		return ok && b == bind
	})
}

func seconds(ms int) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64)
}
