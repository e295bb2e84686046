// Package unnumbered finds the routers at the other end of interfaces by their router advertisements
// (RFC 4861), and advertises the node there, as a router never to be used: routers with sessions by
// interface learn its address so.
package unnumbered

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Interfaces are the interfaces with sessions.
type Interfaces struct {
	log *slog.Logger
	// found is called when another router advertises itself.
	found func()
	links map[string]*link
}

// New returns a set of no interfaces.
func New(log *slog.Logger, found func()) *Interfaces {
	return &Interfaces{log: log, found: found, links: map[string]*link{}}
}

// Keep leaves the interfaces that are not among these names.
func (i *Interfaces) Keep(names []string) {
	for name := range maps.Keys(i.links) {
		if !slices.Contains(names, name) {
			i.leave(name)
		}
	}
}

// Router returns the router of an interface, with the interface as the address' zone; none before
// one advertises itself. While the session with it is established it stays the same.
func (i *Interfaces) Router(name string, established bool) (netip.Addr, error) {
	at, err := find(name)
	if l := i.links[name]; l != nil && (err != nil || l.at != at) { // a new interface of that name, or another address
		i.leave(name)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	if i.links[name] == nil {
		l, err := open(at, i.found)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("send and receive router advertisements: %w", err)
		}
		i.links[name] = l
	}
	l := i.links[name]
	before, now := l.choose(time.Now(), established)
	if !established {
		l.due()
	}
	if before != now {
		i.log.Info("router found by its advertisements", "peer", name, "address", now.WithZone(""))
	}
	return now, nil
}

func (i *Interfaces) leave(name string) {
	i.links[name].close()
	delete(i.links, name)
}

// place is an interface, and its own link-local address with a zone.
type place struct {
	index int
	own   netip.Addr
}

// find returns an interface's place. It has none before its address is unique on the link (RFC
// 4862), because no socket is bound to a tentative address: open fails.
func find(name string) (place, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return place{}, fmt.Errorf("interface %s: %w", name, err)
	}
	addresses, err := i.Addrs()
	if err != nil {
		return place{}, fmt.Errorf("addresses of %s: %w", name, err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsLinkLocalUnicast() {
			own, _ := netip.AddrFromSlice(n.IP)
			return place{i.Index, own.WithZone(name)}, nil
		}
	}
	return place{}, errors.New(name + " has no IPv6 link-local address")
}
