package attack

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Source is the owner of a packet's source address.
type Source int

// Sources.
const (
	Own Source = iota
	Peer
	Nobody
)

// VRRP is an advertisement that no node of a group sends: exactly one property is wrong.
type VRRP struct {
	Name     string
	Version  byte
	Interval time.Duration
	TTL      byte
	Source   Source
	// Broken is set if the checksum is wrong.
	Broken bool
}

// VRRPs are advertisements against a group with VRRPv3.
var VRRPs = []VRRP{
	{Name: "stranger", Version: 3, Interval: 100 * time.Millisecond, TTL: 255},
	{Name: "unknown-source", Version: 3, Interval: 100 * time.Millisecond, TTL: 255, Source: Nobody},
	{Name: "ttl-10", Version: 3, Interval: 100 * time.Millisecond, TTL: 10},
	{Name: "ttl-10-of-a-peer", Version: 3, Interval: 100 * time.Millisecond, TTL: 10, Source: Peer},
	{Name: "wrong-version", Version: 2, Interval: time.Second, TTL: 255},
	{Name: "wrong-checksum", Version: 3, Interval: 100 * time.Millisecond, TTL: 255, Broken: true},
}

// Against returns the advertisement against a group with other settings.
func (v VRRP) Against(s v1alpha1.VRRPSettings) VRRP {
	if s.Version == 2 {
		v.Version, v.Interval = 5-v.Version, time.Duration(s.AdvertIntervalMS)*time.Millisecond // 3 and 2 are swapped
	}
	return v
}

// Filtered reports whether the guard can distinguish such packets from those of the group's
// nodes; docs/security.md has the reasons for the others.
func (v VRRP) Filtered(s v1alpha1.VRRPSettings) bool {
	switch {
	case s.Mode == v1alpha1.ModeMulticast:
		return v.TTL != 255
	case s.Profile == v1alpha1.ProfileClassic:
		return v.Source != Peer
	}
	return true
}

// Packet returns the advertisement for a VIP.
func (v VRRP) Packet(routerID int, vip, from, to netip.Addr) Packet {
	advert := vrrp.Advert{
		Source: from, Version: int(v.Version), RouterID: byte(routerID), Priority: vrrp.HighestPriority, Interval: v.Interval, VIPs: []netip.Addr{vip},
	}
	payload := advert.Marshal(to)
	if v.Broken {
		payload[7]++ // of the checksum
	}
	packet := vrrp.Packet{Source: from, Destination: to, TTL: int(v.TTL), Payload: payload}
	return Packet{To: netip.AddrPortFrom(to, 0), Data: packet.Marshal()}
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}
