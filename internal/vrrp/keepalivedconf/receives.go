package keepalivedconf

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/lists"
)

// VIP returns the first VIP; not valid if there is none.
func (i *Instance) VIP() netip.Prefix {
	if len(i.VIPs) == 0 {
		return netip.Prefix{}
	}
	return i.VIPs[0].Prefix
}

// IPv6 reports whether all VIPs are IPv6 addresses.
func (i *Instance) IPv6() bool {
	return len(i.VIPs) > 0 && !slices.ContainsFunc(i.VIPs, func(v VIP) bool { return v.Addr().Is4() })
}

// InstancesOf returns the instances of VIPs, in the order of the VIPs.
func (c *Config) InstancesOf(vips []netip.Addr) []Instance {
	var out []Instance
	for _, vip := range vips {
		out = append(out, lists.Filter(c.Instances, func(i Instance) bool { return i.VIP().Addr() == vip })...)
	}
	return out
}

// GroupOf returns the sync group of an instance, or nil.
func (c *Config) GroupOf(name string) *SyncGroup {
	for i := range c.SyncGroups {
		if slices.Contains(c.SyncGroups[i].Members, name) {
			return &c.SyncGroups[i]
		}
	}
	return nil
}

// Receives reports whether adverts of from reach an instance and count there. Both have the
// same VIP.
func (a *Instance) Receives(from *Instance) bool {
	same := a.Version == from.Version && a.RouterID == from.RouterID && a.VIP() == from.VIP() &&
		a.Password == from.Password && (a.Version == 3 || a.AdvertMS == from.AdvertMS)
	if !same || len(a.Peers) == 0 != (len(from.Peers) == 0) {
		return false
	}
	if len(a.Peers) == 0 {
		return a.Group == from.Group
	}
	return from.SendsTo(a.Source) && a.accepts(from)
}

// SendsTo reports whether an address is one of the peers.
func (a *Instance) SendsTo(to netip.Addr) bool {
	return slices.ContainsFunc(a.Peers, func(p Peer) bool { return p.Address == to })
}

// accepts reports whether unicast adverts of from are accepted: if a peer has a minimum
// TTL, adverts of unknown senders are dropped.
func (a *Instance) accepts(from *Instance) bool {
	choosy := false
	for _, p := range a.Peers {
		if p.Address == from.Source {
			return from.SentTTL() >= p.MinTTL
		}
		choosy = choosy || p.MinTTL > 0
	}
	return !choosy
}

// SentTTL returns the TTL of unicast adverts. If it is not configured, keepalived 2.2.7
// uses 255 for IPv4, and leaves IPv6 to the kernel (net.ipv6.conf.*.hop_limit).
func (a *Instance) SentTTL() int {
	switch {
	case a.TTL != 0:
		return a.TTL
	case a.Source.Is4():
		return 255
	}
	return 64
}
