// Package netdump lists links, addresses and connections of the kernel consistently, and detects
// changes of nftables' rules.
package netdump

import (
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// attempts bounds how often a list is read that changes meanwhile.
const attempts = 10

// List calls list again while the kernel reports that the list changed meanwhile, so that a
// part of it may be missing.
func List[T any](list func() ([]T, error)) (got []T, err error) {
	for range attempts {
		if got, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return got, err
}

// Links returns the links of the calling thread's network namespace.
func Links() ([]netlink.Link, error) { return List(netlink.LinkList) }

// Addresses returns the addresses of all its links, of both families.
func Addresses() ([]netlink.Addr, error) {
	return List(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
}

// IP returns an address without its prefix; the zero value if it has none.
func IP(a netlink.Addr) netip.Addr {
	if a.IPNet == nil {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(a.IP)
	return ip.Unmap()
}

// Host returns the network of an address alone.
func Host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}
