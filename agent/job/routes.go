package job

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/netdump"
)

// RouteProtocol marks the routes of the job that announces VIPs (rtnetlink(7), rtm_protocol).
const RouteProtocol = 86

// Routes returns the routes of the job that announces VIPs in a table.
func Routes(table int) (out []netlink.Route, err error) {
	filter := &netlink.Route{Table: table, Protocol: RouteProtocol}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := netdump.List(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// Destination returns the destination of a host route.
func Destination(r netlink.Route) netip.Addr {
	if r.Dst == nil {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(r.Dst.IP)
	return a.Unmap()
}
