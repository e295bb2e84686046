package v1alpha1

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/problem"
)

// announce checks how VIPs are announced, in a VIPConfig and in a ClusterConfig: by default, and
// by the groups with a value of their own.
func (c *checker) announce(a Announce, groups []announce, b *BGP, lb LoadBalancerType) {
	by := Announce("")
	for _, g := range append([]announce{{"spec.announce", a}}, groups...) {
		oneOf(c, g.field, g.how)
		switch {
		case !g.how.Routed():
			continue
		case lb != "" && lb != LoadBalancerInCluster:
			c.add(problem.ConflictingFields, g.field, string(g.how), "loadBalancer.type: InCluster, or no value")
		case by != "" && by != g.how:
			c.add(problem.ConflictingFields, g.field, string(g.how), fmt.Sprintf("%s or %s: a node has one BGP speaker", AnnounceVRRP, by))
		}
		if by == "" {
			by = g.how
		}
	}
	if by != AnnounceBGP {
		if b.LocalASN != 0 || len(b.Peers) > 0 || len(b.Communities) > 0 || b.ECMP != nil {
			c.add(problem.ConflictingFields, "spec.bgp", "settings of BGP", "none, or announce: bgp")
		}
		return
	}
	if len(b.Peers) == 0 {
		c.add(problem.MissingField, "spec.bgp.peers", "nothing", "the routers to which the nodes announce VIPs")
	}
	seen := map[string]bool{}
	for i := range b.Peers {
		c.bgpPeer(fmt.Sprintf("spec.bgp.peers[%d]", i), b, &b.Peers[i], seen)
	}
	for i, s := range b.Communities {
		if _, ok := Community(s); !ok {
			c.add(problem.BadValue, fmt.Sprintf("spec.bgp.communities[%d]", i), problem.Quote(s), "two numbers of 0 to 65535, such as 64512:100 (RFC 1997)")
		}
	}
}

// Community returns the number of a community such as "64512:100".
func Community(s string) (uint32, bool) {
	high, low, _ := strings.Cut(s, ":")
	a, err := strconv.ParseUint(high, 10, 16)
	b, err2 := strconv.ParseUint(low, 10, 16)
	return uint32(a<<16 | b), err == nil && err2 == nil
}

func (c *checker) bgpPeer(at string, b *BGP, p *BGPPeer, seen map[string]bool) {
	what := UsableAddress(p.Address)
	switch {
	case p.Interface != "" && p.Address.IsValid():
		c.add(problem.ConflictingFields, at+".interface", problem.Quote(p.Interface), "address or interface")
	case p.Interface != "" && !ValidInterface(p.Interface):
		c.add(problem.BadName, at+".interface", problem.Quote(p.Interface), "the name of an interface, at most 15 letters, digits and marks")
	case p.Interface != "":
		c.once(seen, at+".interface", p.Interface, "each router once")
	case what != "":
		c.add(problem.BadAddress, at+".address", what, "the unicast address of a router, or interface instead")
	default:
		c.once(seen, at+".address", p.Address.String(), "each router once")
	}
	if p.ASN == 0 {
		c.add(problem.MissingField, at+".asn", "nothing", "the AS number of the router")
	}
	if b.Local(p) == 0 {
		c.add(problem.MissingField, "spec.bgp.localASN", "nothing", "the AS number of the nodes")
	}
	if f := p.PasswordFile; f != "" && (path.Dir(f) != BGPSecrets || !validWord(path.Base(f), 63, "_-.") || strings.HasPrefix(path.Base(f), ".")) {
		c.add(problem.BadValue, at+".passwordFile", problem.Quote(f), "a file in "+BGPSecrets+" on the nodes, such as "+BGPSecrets+"/password")
	}
	if p.Multihop != 0 && (p.Multihop < 2 || p.Multihop > 255) {
		c.add(problem.BadValue, at+".multihop", fmt.Sprint(p.Multihop), "2 to 255")
	}
	if p.Multihop != 0 && p.Interface != "" {
		c.add(problem.ConflictingFields, at+".multihop", fmt.Sprint(p.Multihop), "a router with an address: one at an interface is a single hop away")
	}
	if p.Multihop != 0 && p.TTLSecurity {
		c.add(problem.ConflictingFields, at+".ttlSecurity", "true", "a router on a subnet of the nodes, without multihop")
	}
	if p.ExtendedNextHop && p.Address.Is4() {
		c.add(problem.ConflictingFields, at+".extendedNextHop", "true", "a router with an IPv6 address: its session carries the IPv4 VIPs then")
	}
	if d := time.Duration(p.HoldTime); d != 0 && (d < 3*time.Second || d > 65535*time.Second || d%time.Second != 0) {
		c.add(problem.BadTiming, at+".holdTime", d.String(), "3s to 65535s in whole seconds (RFC 4271 section 4.2)")
	}
	c.bfd(at, p)
	for i, n := range p.Nodes.Names {
		c.name(fmt.Sprintf("%s.nodes.names[%d]", at, i), n)
	}
	for i, n := range p.Nodes.Subnets {
		if !n.IsValid() {
			c.add(problem.BadNetwork, fmt.Sprintf("%s.nodes.subnets[%d]", at, i), "no network", "a network, such as 192.0.2.0/24")
		}
	}
}

func (c *checker) bfd(at string, p *BGPPeer) {
	b := &p.BFD
	if b.On() && p.Multihop != 0 {
		c.add(problem.ConflictingFields, at+".bfd.enabled", "true", "no BFD with multihop, which takes a BFD of its own (RFC 5883) that vipgen does not have")
	}
	if d := time.Duration(b.Interval); d != 0 && (d < 10*time.Millisecond || d > time.Minute) {
		c.add(problem.BadTiming, at+".bfd.interval", d.String(), "10ms to 60s")
	}
	if b.Multiplier != 0 && (b.Multiplier < 2 || b.Multiplier > 255) {
		c.add(problem.BadValue, at+".bfd.multiplier", fmt.Sprint(b.Multiplier), "2 to 255")
	}
}
