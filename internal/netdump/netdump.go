// Package netdump lists what the kernel has, also while that changes.
package netdump

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// attempts is how often a list that changed while it was read is read.
const attempts = 10

// List calls list again while the kernel says that what it listed changed
// meanwhile, so that some of it may be missing.
func List[T any](list func() ([]T, error)) (got []T, err error) {
	for range attempts {
		if got, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return got, err
}

// Links are those of the network namespace that the calling thread is in.
func Links() ([]netlink.Link, error) { return List(netlink.LinkList) }

// Addresses are those of all its links, of both families.
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
