// Package vrrp reads VRRP adverts, and listens for them on the wire.
package vrrp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Advert is a VRRP advertisement: RFC 3768, section 5 (version 2), or RFC 9568,
// section 5 (version 3).
type Advert struct {
	Source   netip.Addr
	Version  int
	RouterID uint8
	Priority uint8 // 0: the sender gives the VIPs up
	Interval time.Duration
	VIPs     []netip.Addr
}

const (
	advertHeader  = 8 // bytes
	advertisement = 1 // the one type of message that there is
)

// ParseAdvert reads the payload of an IP packet from that source. The checksum is
// left to those whom the advert is for.
func ParseAdvert(source netip.Addr, payload []byte) (*Advert, error) {
	if len(payload) < advertHeader {
		return nil, fmt.Errorf("an advert of %d bytes, want %d at least", len(payload), advertHeader)
	}
	a := &Advert{Source: source, Version: int(payload[0] >> 4), RouterID: payload[1], Priority: payload[2]}
	if kind := payload[0] & 15; kind != advertisement {
		return nil, fmt.Errorf("VRRP message of type %d, want %d", kind, advertisement)
	}
	switch a.Version {
	case 2:
		a.Interval = time.Duration(payload[5]) * time.Second
	case 3:
		a.Interval = time.Duration(binary.BigEndian.Uint16(payload[4:])&0xfff) * 10 * time.Millisecond
	default:
		return nil, fmt.Errorf("VRRP version %d, want 2 or 3", a.Version)
	}
	size, count := source.BitLen()/8, int(payload[3])
	if size == 0 || len(payload) < advertHeader+count*size {
		return nil, fmt.Errorf("an advert of %d bytes for %d addresses of %d", len(payload), count, size)
	}
	for b := range slices.Chunk(payload[advertHeader:advertHeader+count*size], max(size, 1)) {
		addr, _ := netip.AddrFromSlice(b)
		a.VIPs = append(a.VIPs, addr)
	}
	return a, nil
}

// DownInterval is how long after an advert of it the sender is taken for gone:
// RFC 9568, section 6.1, Active_Down_Interval.
func (a *Advert) DownInterval() time.Duration {
	skew := time.Duration(256-int(a.Priority)) * a.Interval / 256
	return 3*a.Interval + skew
}
