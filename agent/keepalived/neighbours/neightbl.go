package neighbours

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Attributes of neighbour tables (linux/neighbour.h).
const (
	ndtaName           = 1
	ndtaParms          = 6
	ndtpaIfindex       = 1
	ndtpaQueueLenBytes = 16
)

// ndtmsg is the header of a neighbour table message: the family.
type ndtmsg uint8

// Len implements nl.NetlinkRequestData.
func (ndtmsg) Len() int { return 4 }

// Serialize implements nl.NetlinkRequestData.
func (f ndtmsg) Serialize() []byte { return []byte{byte(f), 0, 0, 0} }

// table returns the neighbour table of a family.
func table(ipv6 bool) (family ndtmsg, name string) {
	if ipv6 {
		return unix.AF_INET6, "ndisc_cache"
	}
	return unix.AF_INET, "arp_cache"
}

// readLimits returns the limit of each interface and family.
func readLimits() (out []limit, err error) {
	for _, ipv6 := range []bool{false, true} {
		family, _ := table(ipv6)
		req := nl.NewNetlinkRequest(unix.RTM_GETNEIGHTBL, unix.NLM_F_DUMP)
		req.AddData(family)
		messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGHTBL)
		if err != nil {
			return nil, fmt.Errorf("reading the neighbour tables: %w", err)
		}
		for _, m := range messages {
			l, ok, err := parseLimit(m)
			if err != nil {
				return nil, fmt.Errorf("reading the neighbour tables: %w", err)
			}
			if l.IPv6 = ipv6; ok {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// parseLimit parses one message; ok is false for the defaults of a table.
func parseLimit(message []byte) (l limit, ok bool, err error) {
	if len(message) < ndtmsg(0).Len() {
		return l, false, fmt.Errorf("%d bytes", len(message))
	}
	attrs, err := nl.ParseRouteAttrAsMap(message[ndtmsg(0).Len():])
	if err != nil {
		return l, false, err
	}
	parms, err := nl.ParseRouteAttrAsMap(attrs[ndtaParms].Value)
	if err != nil {
		return l, false, err
	}
	at, size := parms[ndtpaIfindex].Value, parms[ndtpaQueueLenBytes].Value
	if len(at) != 4 || len(size) != 4 {
		return l, false, nil
	}
	i, err := net.InterfaceByIndex(int(nl.NativeEndian().Uint32(at)))
	if err != nil { // removed meanwhile
		return l, false, nil
	}
	return limit{Interface: i.Name, Bytes: nl.NativeEndian().Uint32(size)}, true, nil
}

func (l limit) set() error {
	i, err := net.InterfaceByName(l.Interface)
	if err != nil {
		return err
	}
	family, name := table(l.IPv6)
	req := nl.NewNetlinkRequest(unix.RTM_SETNEIGHTBL, unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	req.AddData(family)
	req.AddData(nl.NewRtAttr(ndtaName, append([]byte(name), 0)))
	parms := nl.NewRtAttr(ndtaParms|unix.NLA_F_NESTED, nil)
	parms.AddRtAttr(ndtpaIfindex, nl.Uint32Attr(uint32(i.Index)))
	parms.AddRtAttr(ndtpaQueueLenBytes, nl.Uint32Attr(l.Bytes))
	req.AddData(parms)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("bounding the queue of neighbours on %s: %w", l.Interface, err)
	}
	return nil
}
