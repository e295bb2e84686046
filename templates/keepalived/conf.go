// Package keepalived makes keepalived.conf of a node from ClusterConfig and
// Node.
package keepalived

import (
	_ "embed"
	"fmt"
	"net/netip"
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
	// At is where the others find the node, on Interface: at Source, in unicast mode.
	At v1alpha1.Binding
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
		k.Idle = []string{vrrp.IdleLoadBalancer + string(c.Spec.LoadBalancer)}
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
	settings := s.VRRP.Initial()
	if n.VRRP != nil {
		settings = *n.VRRP
	}
	members, idle := vrrp.Join(s, n, g, settings)
	for _, why := range idle {
		k.Idle = append(k.Idle, g.Name+": "+why)
	}
	if len(members) == 0 {
		return
	}
	base, terms := vrrp.Terms(g, n.Role)
	var instances []Instance
	for _, m := range members {
		inst := Instance{
			Name:      fmt.Sprintf("%s_%d", g.Instance, m.Index),
			Interface: m.At.Interface,
			At:        m.At,
			RouterID:  g.VirtualRouterID,
			Priority:  base,
			VIP:       netip.PrefixFrom(m.VIP, m.VIP.BitLen()),
			Terms:     terms,
		}
		if m.VIP.Is4() {
			inst.Label = v1alpha1.VIPLabel
		}
		inst.set(settings, g, m)
		instances = append(instances, inst)
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

func (i *Instance) set(v v1alpha1.VRRPSettings, g *v1alpha1.Group, m vrrp.Member) {
	i.Version, i.AllKnown = v.Version, m.AllKnown
	if i.VIP.Addr().Is6() {
		i.Version = 3
	}
	if i.Version == 2 {
		i.Password = g.Password
	}
	interval := v.AdvertIntervalMS
	if v.Mode != v1alpha1.ModeMulticast {
		i.unicast(m)
		i.FullTTL = v.Profile != v1alpha1.ProfileClassic
		i.OnLink = i.FullTTL && m.AllKnown
		interval = vrrp.PacedInterval(interval, len(i.Peers)*len(g.VIPs), i.Version)
	}
	i.AdvertInterval = vrrp.Seconds(interval)
}

// unicast fills in where adverts go.
func (i *Instance) unicast(m vrrp.Member) {
	i.Peers = m.PeerAddresses()
	switch {
	case len(i.Peers) > 0:
		i.Source = m.At.Source.Addr()
	case m.At.Source.Addr().Is4():
		i.QuietGroup = quietGroup4
	default:
		i.QuietGroup = quietGroup6
	}
}
