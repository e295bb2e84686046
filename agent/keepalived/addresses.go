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
		// The kernel may have removed it meanwhile.
		if err := netlink.AddrDel(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: a.LinkIndex}}, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, fmt.Errorf("removing VIP %s: %w", a.IPNet, err))
			continue
		}
		removed = true
		log.Warn("leftover VIP removed", "vip", a.IPNet.String(), "interface", nameOf(a.LinkIndex))
	}
	if removed {
		errs = append(errs, restore(before, vips, log))
	}
	return errors.Join(errs...)
}

// restore puts back the addresses that the kernel removed with a VIP: the other IPv4
// addresses of a network go with the first one, unless promote_secondaries is set.
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
		log.Info("address removed with a VIP restored", "address", a.IPNet.String(), "interface", nameOf(a.LinkIndex))
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
