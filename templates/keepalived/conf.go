// Package keepalived renders keepalived.conf of a node from ClusterConfig and Node.
package keepalived

import (
	_ "embed"
	"fmt"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates"
)

// Template is the node template, as it is shipped.
//
//go:embed keepalived.conf.tmpl
var Template string

// Conf is the data of the template.
type Conf struct {
	Cluster string
	Node    string
	// Idle has a line for each reason why VIPs of this node's role are left out (vrrp.LeftOut).
	// The template of every release names the field: another name would change nodes' files.
	Idle []string
	// TrackFiles are the track files used by Instances and SyncGroups.
	TrackFiles []TrackFile
	SyncGroups []SyncGroup
	Instances  []Instance
	// QuietGroups are the multicast groups, by address family ("4", "6"), of unicast
	// instances without peers. Instances with peers use none, and a node does not mix
	// modes. keepalived 2.1 has no group per instance.
	QuietGroups map[string]string
}

// TrackFile is a file watched by keepalived.
type TrackFile struct {
	vrrp.Term
	Path string
}

// SyncGroup holds instances that change state together, with the checks of all of them
// (hard case 14).
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
	// Password has at most 8 bytes; empty for VRRPv3.
	Password string
	// Source and Peers are set in unicast mode with at least one peer.
	Source netip.Addr
	Peers  []netip.Addr
	// FullTTL sends adverts with TTL 255, and OnLink accepts only those, so that they
	// come from this link (required of multicast by RFC 9568 section 5.1.1.3) and from a
	// peer. The TTL of the operator's own keepalived depends on its version and the
	// family, so the classic profile uses neither.
	FullTTL, OnLink bool
	// AllKnown reports that all senders of adverts are known nodes.
	AllKnown bool
	// QuietGroup is a multicast address that no other cluster listens to. It is set in
	// unicast mode without peers, where keepalived would send its adverts to the shared
	// VRRP multicast group.
	QuietGroup string
	// VIP has a host prefix, so that the kernel does not choose it as a source address of
	// the node's own connections.
	VIP netip.Prefix
	// Label is the label of an IPv4 VIP's address. The kernel has none for IPv6; there,
	// VIPs are recognized as deprecated addresses with a host prefix.
	Label string
	Terms []vrrp.Term
	// At is where peers reach the node, on Interface: at Source, in unicast mode.
	At v1alpha1.Binding
}

// Interval returns the time between two adverts; 0 if AdvertInterval is invalid.
func (i *Instance) Interval() time.Duration {
	d, err := time.ParseDuration(i.AdvertInterval + "s")
	if err != nil {
		return 0
	}
	return d
}

// Multicast reports that adverts go to all routers of the link.
func (i *Instance) Multicast() bool { return len(i.Peers) == 0 && i.QuietGroup == "" }

// Multicast addresses reserved for experiments, link scope (RFC 4727 sections 2.4.1 and
// 3.4), for adverts without receivers.
const (
	quietGroup4 = "224.0.0.254"
	quietGroup6 = "ff02::114"
)

// New returns the configuration of a node. Without Instances, keepalived need not run;
// Idle has the reasons.
func New(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) *Conf {
	k := &Conf{Cluster: c.Metadata.Name, Node: n.Name}
	if !c.Spec.ByVRRP() {
		k.Idle = []string{vrrp.LeftOutLoadBalancer.Text(c.Spec.LoadBalancer)}
		return k
	}
	s := c.Spec.Elected()
	for i := range s.Groups {
		k.add(s, n, &s.Groups[i])
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
	members, leftOut := vrrp.Join(s, n, g, settings)
	k.Idle = append(k.Idle, lists.Map(leftOut, func(why string) string { return g.Name + ": " + why })...)
	if len(members) == 0 {
		return
	}
	base, terms := vrrp.PriorityTerms(g, n.Role)
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

// family returns "4" or "6", the suffix of keepalived's keywords.
func (i *Instance) family() string {
	if i.VIP.Addr().Is4() {
		return "4"
	}
	return "6"
}

// syncGroup joins instances and takes over their checks, because keepalived ignores
// weights of members.
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

// unicast sets the destinations of adverts.
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
