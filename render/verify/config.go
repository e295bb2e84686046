package verify

import "net/netip"

// Config is what keepalived takes from a keepalived.conf.
type Config struct {
	// RouterID names the node in keepalived's log.
	RouterID   string
	Files      []File
	SyncGroups []SyncGroup
	Instances  []Instance
	// Groups are the multicast groups of instances without peers, one of a family.
	Groups []netip.Addr
}

// File is a file that keepalived watches (vrrp_track_file).
type File struct {
	Name string
	Path string
	// Weight is that of trackers that give none.
	Weight int
	// Initial is what a missing file is made to say.
	Initial int
}

// SyncGroup is a set of instances that change state together.
type SyncGroup struct {
	Name    string
	Members []string
	// Tracks count for all members; keepalived ignores those of members.
	Tracks []Track
}

// Track is a file's part in a priority: what the file says, times Weight, is
// added. With weight 0 a file that does not say 0 is a fault: the instance holds
// nothing.
type Track struct {
	File   string
	Weight int
}

// Instance is a VRRP instance.
type Instance struct {
	Name string
	// Master says that it starts as the holder (state MASTER), NoPreempt that it
	// leaves the VIP to a holder of lower priority.
	Master, NoPreempt bool
	Version           int
	Interface         string
	RouterID          int
	Priority          int
	// AdvertMS is the time between adverts in milliseconds.
	AdvertMS int
	// Password is that of PASS authentication, which VRRPv2 has.
	Password string
	// Source is the address that adverts come from; not valid unless given.
	Source netip.Addr
	Peers  []Peer
	// TTL of adverts to peers; 0 where the configuration does not say.
	TTL int
	// Group is the multicast address of adverts, if it is not VRRP's own.
	Group  netip.Addr
	VIP    netip.Prefix
	Tracks []Track
}

// Peer is a unicast peer. MinTTL is what adverts must still have; 0 is anything.
type Peer struct {
	Address netip.Addr
	MinTTL  int
}

// Bounds of a priority that changes with checks: 0 says goodbye and 255 is for
// the owner of the address (RFC 9568 section 5.2.4).
const (
	leastPriority = 1
	mostPriority  = 254
)

// hears says whether adverts that from sends reach a and count there. Both are
// instances of one VIP.
func (a *Instance) hears(from *Instance) bool {
	same := a.Version == from.Version && a.RouterID == from.RouterID && a.VIP == from.VIP &&
		a.Password == from.Password && (a.Version == 3 || a.AdvertMS == from.AdvertMS)
	if !same || len(a.Peers) == 0 != (len(from.Peers) == 0) {
		return false
	}
	if len(a.Peers) == 0 {
		return a.Group == from.Group
	}
	return from.sendsTo(a.Source) && a.accepts(from)
}

func (a *Instance) sendsTo(to netip.Addr) bool {
	for _, p := range a.Peers {
		if p.Address == to {
			return true
		}
	}
	return false
}

// accepts says whether unicast adverts of from are taken: where peers have a
// minimum of TTL, those of others are dropped.
func (a *Instance) accepts(from *Instance) bool {
	choosy := false
	for _, p := range a.Peers {
		if p.Address == from.Source {
			return from.sentTTL() >= p.MinTTL
		}
		choosy = choosy || p.MinTTL > 0
	}
	return !choosy
}

// sentTTL is what unicast adverts have. Unless the configuration says it,
// keepalived 2.2.7 gives them the most that there is with IPv4, and leaves IPv6 to
// the kernel (net.ipv6.conf.*.hop_limit).
func (a *Instance) sentTTL() int {
	switch {
	case a.TTL != 0:
		return a.TTL
	case a.Source.Is4():
		return 255
	}
	return 64
}
