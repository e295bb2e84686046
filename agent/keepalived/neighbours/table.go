package neighbours

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// discard is the port of the discard service (RFC 863). Nothing needs to listen there.
const discard = 9

// Prime makes the peers learn this node's link address by resolving theirs. Adverts to a
// node that was away wait up to a second for that, several intervals of a fast profile:
// keepalived would acquire the VIP before the first one arrives.
func Prime(peers []netip.Addr) {
	for _, p := range peers {
		c, err := net.DialTimeout("udp", netip.AddrPortFrom(p, discard).String(), time.Second)
		if err != nil {
			continue // no route: no advert comes that way either
		}
		c.Write([]byte{0})
		c.Close()
	}
}

// Solicit resolves an address on the link, ignoring the kernel's cached entry.
func Solicit(link string, a netip.Addr) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	err = netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: a.AsSlice()})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	Prime([]netip.Addr{a})
	return nil
}

// Answered reports whether a host on the link answered for an address.
func Answered(link string, a netip.Addr) (bool, error) {
	family := netlink.FAMILY_V4
	if a.Is6() {
		family = netlink.FAMILY_V6
	}
	const known = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
	is, err := inTable(link, family, func(n netlink.Neigh, ip netip.Addr) bool { return ip == a && n.State&known != 0 })
	if err != nil {
		err = fmt.Errorf("resolving %v: %w", a, err)
	}
	return is, err
}

// isPeer reports whether a link address is a peer's, by the kernel's table: a holder
// sends to its peers all the time.
func isPeer(link string, at net.HardwareAddr, peers []netip.Addr) bool {
	is, _ := inTable(link, netlink.FAMILY_ALL, func(n netlink.Neigh, ip netip.Addr) bool {
		return bytes.Equal(n.HardwareAddr, at) && slices.Contains(peers, ip)
	})
	return is
}

// inTable reports whether an entry of a link's neighbour table matches.
func inTable(link string, family int, match func(netlink.Neigh, netip.Addr) bool) (bool, error) {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return false, err
	}
	list, err := netlink.NeighList(l.Attrs().Index, family)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(n netlink.Neigh) bool {
		ip, _ := netip.AddrFromSlice(n.IP)
		return match(n, ip.Unmap())
	}), nil
}
