package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/netdump"
)

// setLocal makes the node accept packets for exactly these VIPs, as local routes: a VIP is
// no address of an interface, so that nothing takes it for the node's own, and duplicate
// address detection, which would find the other nodes, does not run.
func setLocal(vips []netip.Addr) error {
	wanted := map[netip.Addr]int{}
	for _, a := range vips {
		wanted[a] = 0
	}
	return set(unix.RT_TABLE_LOCAL, unix.RTN_LOCAL, wanted)
}

// local returns the VIPs that are local now.
func local() ([]netip.Addr, error) {
	routes, err := job.Routes(unix.RT_TABLE_LOCAL)
	return lists.Map(routes, job.Destination), err
}

// metricStep separates preferences in the routing table for another speaker.
const metricStep = 100

// setTable makes the routing table for another speaker hold exactly these routes.
func setTable(routes []Route) error {
	wanted := map[netip.Addr]int{}
	for _, r := range routes {
		wanted[r.VIP] = (r.Preference + 1) * metricStep
	}
	return set(v1alpha1.AnnounceTableNumber, unix.RTN_UNICAST, wanted)
}

// set adds and removes routes of this job in a table, so that they are those to the wanted
// destinations, by metric.
func set(table, kind int, wanted map[netip.Addr]int) (failed error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	have, err := job.Routes(table)
	if err != nil {
		return err
	}
	same := func(r netlink.Route, metric int) bool {
		// The kernel sets a metric for IPv6 routes without one.
		return r.Type == kind && r.LinkIndex == lo.Attrs().Index && (metric == 0 || r.Priority == metric)
	}
	for vip, metric := range wanted {
		if slices.ContainsFunc(have, func(r netlink.Route) bool { return job.Destination(r) == vip && same(r, metric) }) {
			continue
		}
		r := &netlink.Route{
			Dst: netdump.Host(vip), Table: table, Type: kind, Protocol: job.RouteProtocol, LinkIndex: lo.Attrs().Index, Priority: metric,
			Scope: netlink.SCOPE_LINK,
		}
		if kind == unix.RTN_LOCAL {
			r.Scope = netlink.SCOPE_HOST
		}
		if err := netlink.RouteReplace(r); err != nil {
			failed = errors.Join(failed, fmt.Errorf("add the route to %s in table %d: %w", vip, table, err))
		}
	}
	for _, r := range have {
		if metric, ok := wanted[job.Destination(r)]; ok && same(r, metric) {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = errors.Join(failed, fmt.Errorf("remove the route to %s in table %d: %w", job.Destination(r), table, err))
		}
	}
	return failed
}
