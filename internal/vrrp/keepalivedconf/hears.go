package keepalivedconf

import (
	"net/netip"
	"slices"
)

// VIP is the first one; not valid if there is none.
func (i *Instance) VIP() netip.Prefix {
	if len(i.VIPs) == 0 {
		return netip.Prefix{}
	}
	return i.VIPs[0].Prefix
}

// IPv6 says that all VIPs are IPv6 addresses.
func (i *Instance) IPv6() bool {
	return len(i.VIPs) > 0 && !slices.ContainsFunc(i.VIPs, func(v VIP) bool { return v.Addr().Is4() })
}

// InstancesOf gives the instances of VIPs, in their order.
func (c *Config) InstancesOf(vips []netip.Addr) []Instance {
	var out []Instance
	for _, vip := range vips {
		for _, i := range c.Instances {
			if i.VIP().Addr() == vip {
				out = append(out, i)
			}
		}
	}
	return out
}

// GroupOf gives the sync group of an instance, or nil.
func (c *Config) GroupOf(name string) *SyncGroup {
	for i := range c.SyncGroups {
		if slices.Contains(c.SyncGroups[i].Members, name) {
			return &c.SyncGroups[i]
		}
	}
	return nil
}

// Hears says whether adverts that from sends reach an instance and count there. Both have
// one VIP.
func (a *Instance) Hears(from *Instance) bool {
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

// SendsTo says whether an address is one of the peers.
func (a *Instance) SendsTo(to netip.Addr) bool {
	return slices.ContainsFunc(a.Peers, func(p Peer) bool { return p.Address == to })
}

// accepts says whether unicast adverts of from are taken: where peers have a
// minimum of TTL, those of others are dropped.
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

// SentTTL is what unicast adverts have. Unless the configuration says it,
// keepalived 2.2.7 gives them the most that there is with IPv4, and leaves IPv6 to
// the kernel (net.ipv6.conf.*.hop_limit).
func (a *Instance) SentTTL() int {
	switch {
	case a.TTL != 0:
		return a.TTL
	case a.Source.Is4():
		return 255
	}
	return 64
}
