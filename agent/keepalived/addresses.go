package keepalived

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/netdump"
)

// removeVIPs removes VIPs from every interface, whatever their prefix length.
func removeVIPs(vips []netip.Addr, log *slog.Logger) error {
	before, err := nodeAddresses()
	if err != nil {
		return err
	}
	var errs []error
	removed := false
	for _, a := range before {
		if !slices.Contains(vips, netdump.IP(a)) {
			continue
		}
		// One that went away meanwhile is as good as removed.
		if err := netlink.AddrDel(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: a.LinkIndex}}, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, fmt.Errorf("removing VIP %s: %w", a.IPNet, err))
			continue
		}
		removed = true
		log.Warn("removed a VIP that was left on an interface", "vip", a.IPNet.String(), "interface", nameOf(a.LinkIndex))
	}
	if removed {
		errs = append(errs, restore(before, vips, log))
	}
	return errors.Join(errs...)
}

// restore puts back what went with a VIP: the kernel removes the other IPv4
// addresses of a network with the first one of that network, unless
// promote_secondaries is set.
func restore(before []netlink.Addr, vips []netip.Addr, log *slog.Logger) error {
	after, err := nodeAddresses()
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range before {
		same := func(b netlink.Addr) bool { return a.LinkIndex == b.LinkIndex && netdump.IP(a) == netdump.IP(b) }
		if netdump.IP(a).Is6() || slices.Contains(vips, netdump.IP(a)) || slices.ContainsFunc(after, same) {
			continue
		}
		a.Flags &^= unix.IFA_F_SECONDARY
		if err := netlink.AddrReplace(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: a.LinkIndex}}, &a); err != nil {
			errs = append(errs, fmt.Errorf("restoring address %s: %w", a.IPNet, err))
			continue
		}
		log.Info("restored an address that went with a VIP", "address", a.IPNet.String(), "interface", nameOf(a.LinkIndex))
	}
	return errors.Join(errs...)
}

func nodeAddresses() ([]netlink.Addr, error) {
	list, err := netdump.Addresses()
	if err != nil {
		return nil, fmt.Errorf("reading the addresses: %w", err)
	}
	return slices.DeleteFunc(list, func(a netlink.Addr) bool { return a.IPNet == nil }), nil
}

func nameOf(index int) string {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return fmt.Sprint(index)
	}
	return l.Attrs().Name
}
