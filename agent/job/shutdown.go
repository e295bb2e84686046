package job

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/netdump"
)

// The order in which the jobs of a node end when all are stopped at once, at a shutdown
// or reboot of the node (hard case 43): first the VIPs leave the node, then the redirect
// is removed, then HAProxy drains.
//
// The jobs run in containers that may end in any order, and one of them may be dead. So
// none waits for another: each polls whether the VIPs are still on the node, up to a
// bound.

// ShutdownBound bounds how long a job waits for the VIPs to leave: the keepalived job
// takes at most MostPriority before it stops keepalived, which takes a second or two.
const ShutdownBound = MostPriority + 3*time.Second

// MostPriority bounds how long the keepalived job waits for a peer to take over the VIPs
// from a running holder: with an advert per second that takes four seconds.
const MostPriority = 5 * time.Second

// vipPollEvery is the poll interval for VIPs on the node.
const vipPollEvery = 5 * time.Millisecond

// AwaitVIPs waits until none of the VIPs is on the node, up to a bound, and reports
// whether they have gone; not if the addresses cannot be read.
func AwaitVIPs(vips []netip.Addr, bound time.Duration) (gone bool) {
	for deadline := time.Now().Add(bound); ; time.Sleep(vipPollEvery) {
		here, err := VIPsHere(vips)
		if err == nil && !here {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// AwaitShutdown waits until none of the VIPs is on the node, up to ShutdownBound, and logs it.
func AwaitShutdown(log *slog.Logger, vips []netip.Addr) {
	log.Info("waiting for VIPs to move to other nodes", "bound", ShutdownBound)
	if AwaitVIPs(vips, ShutdownBound) {
		log.Info("VIPs moved to other nodes")
	} else {
		log.Warn("VIPs still on this node after the longest wait", "bound", ShutdownBound)
	}
}

// VIPsHere reports whether one of the VIPs is on the node.
func VIPsHere(vips []netip.Addr) (bool, error) {
	here, err := Here(vips)
	return len(here) > 0, err
}

// Here returns the VIPs that are on the node: on an interface, or by a local route where
// routers know them.
func Here(vips []netip.Addr) (here []netip.Addr, err error) {
	list, err := netdump.Addresses()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if ip := netdump.IP(a); slices.Contains(vips, ip) {
			here = append(here, ip)
		}
	}
	routes, err := Routes(unix.RT_TABLE_LOCAL)
	for _, r := range routes {
		if ip := Destination(r); slices.Contains(vips, ip) {
			here = append(here, ip)
		}
	}
	return here, err
}
