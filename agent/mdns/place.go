package mdns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/netdump"
)

// place is the link with a node's addresses.
type place struct {
	link      int    // index; 0 for none
	name      string // of the link
	addresses []netip.Addr
	linkLocal bool // the link has an IPv6 link-local address
}

func (p place) equal(other place) bool {
	return p.link == other.link && p.name == other.name && p.linkLocal == other.linkLocal &&
		slices.Equal(p.addresses, other.addresses)
}

// locate finds the running link with the first wanted address that any link has, and the
// wanted addresses usable on it. Without such a link the place has none.
func locate(wanted []netip.Addr) (place, error) {
	links, err := netdump.Links()
	if err != nil {
		return place{}, fmt.Errorf("listing links: %w", err)
	}
	addrs, err := netdump.Addresses()
	if err != nil {
		return place{}, fmt.Errorf("listing addresses: %w", err)
	}
	on := map[netip.Addr]int{}
	local := map[int]bool{}
	for _, a := range addrs {
		addr, ok := netip.AddrFromSlice(a.IP)
		if !ok || a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 {
			continue
		}
		addr = addr.Unmap()
		on[addr] = a.LinkIndex
		if addr.Is6() && addr.IsLinkLocalUnicast() {
			local[a.LinkIndex] = true
		}
	}
	for _, want := range wanted {
		i := slices.IndexFunc(links, func(link netlink.Link) bool {
			attrs := link.Attrs()
			return attrs.Index == on[want] && attrs.RawFlags&unix.IFF_RUNNING != 0
		})
		if i < 0 {
			continue
		}
		attrs := links[i].Attrs()
		usable := slices.DeleteFunc(slices.Clone(wanted), func(a netip.Addr) bool { return on[a] != attrs.Index })
		return place{attrs.Index, attrs.Name, sortAddrs(usable), local[attrs.Index]}, nil
	}
	return place{}, nil
}

// watchPlaces sends after changes of links or addresses until ctx ends. Its sockets are
// open when it returns.
func watchPlaces(ctx context.Context) (<-chan struct{}, error) {
	links := make(chan netlink.LinkUpdate)
	addrs := make(chan netlink.AddrUpdate)
	if err := netlink.LinkSubscribe(links, ctx.Done()); err != nil {
		return nil, fmt.Errorf("watching links: %w", err)
	}
	if err := netlink.AddrSubscribe(addrs, ctx.Done()); err != nil {
		go func() {
			for range links {
			}
		}()
		return nil, fmt.Errorf("watching addresses: %w", err)
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		for links != nil || addrs != nil {
			select {
			case _, ok := <-links:
				if !ok {
					links = nil
				}
			case _, ok := <-addrs:
				if !ok {
					addrs = nil
				}
			}
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed, nil
}

// attachment is the membership in the groups at the place of a node's addresses, and
// follows them.
type attachment struct {
	wanted []netip.Addr
	place  place
	*group
}

// update moves to the current place of the wanted addresses, and reports whether it
// changed. After an error, or without a link, there is no group.
func (a *attachment) update() (changed bool, err error) {
	now, err := locate(a.wanted)
	if err == nil && now.equal(a.place) && (a.group != nil || now.link == 0) {
		return false, nil
	}
	a.detach()
	if err != nil || now.link == 0 {
		return true, err
	}
	a.group, err = join(now)
	if err != nil {
		return true, fmt.Errorf("link %s: %w", now.name, err)
	}
	a.place = now
	return true, nil
}

func (a *attachment) detach() {
	if a.group != nil {
		a.leave()
	}
	a.group, a.place = nil, place{}
}

// incoming returns the channel of messages; nil without a group.
func (a *attachment) incoming() <-chan packet {
	if a.group == nil {
		return nil
	}
	return a.packets
}
