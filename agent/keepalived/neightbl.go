package keepalived

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

// ndtmsg is the head of a message about a neighbour table: the family.
type ndtmsg uint8

// Len is part of nl.NetlinkRequestData.
func (ndtmsg) Len() int { return 4 }

// Serialize is part of nl.NetlinkRequestData.
func (f ndtmsg) Serialize() []byte { return []byte{byte(f), 0, 0, 0} }

// table names the neighbour table of a family.
func table(ipv6 bool) (family ndtmsg, name string) {
	if ipv6 {
		return unix.AF_INET6, "ndisc_cache"
	}
	return unix.AF_INET, "arp_cache"
}

// readQueues reads what may wait for a neighbour, of every interface.
func readQueues() (out []queue, err error) {
	for _, ipv6 := range []bool{false, true} {
		family, _ := table(ipv6)
		req := nl.NewNetlinkRequest(unix.RTM_GETNEIGHTBL, unix.NLM_F_DUMP)
		req.AddData(family)
		messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGHTBL)
		if err != nil {
			return nil, fmt.Errorf("reading the neighbour tables: %w", err)
		}
		for _, m := range messages {
			q, ok, err := parseQueue(m)
			if err != nil {
				return nil, fmt.Errorf("reading the neighbour tables: %w", err)
			}
			if q.IPv6 = ipv6; ok {
				out = append(out, q)
			}
		}
	}
	return out, nil
}

// parseQueue reads one message; ok is false for the defaults of a table.
func parseQueue(message []byte) (q queue, ok bool, err error) {
	if len(message) < ndtmsg(0).Len() {
		return q, false, fmt.Errorf("%d bytes", len(message))
	}
	attrs, err := nl.ParseRouteAttrAsMap(message[ndtmsg(0).Len():])
	if err != nil {
		return q, false, err
	}
	parms, err := nl.ParseRouteAttrAsMap(attrs[ndtaParms].Value)
	if err != nil {
		return q, false, err
	}
	at, size := parms[ndtpaIfindex].Value, parms[ndtpaQueueLenBytes].Value
	if len(at) != 4 || len(size) != 4 {
		return q, false, nil
	}
	i, err := net.InterfaceByIndex(int(nl.NativeEndian().Uint32(at)))
	if err != nil { // it went meanwhile
		return q, false, nil
	}
	return queue{Interface: i.Name, Bytes: nl.NativeEndian().Uint32(size)}, true, nil
}

// setQueue bounds what may wait for a neighbour on an interface.
func setQueue(q queue) error {
	i, err := net.InterfaceByName(q.Interface)
	if err != nil {
		return err
	}
	family, name := table(q.IPv6)
	req := nl.NewNetlinkRequest(unix.RTM_SETNEIGHTBL, unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	req.AddData(family)
	req.AddData(nl.NewRtAttr(ndtaName, append([]byte(name), 0)))
	parms := nl.NewRtAttr(ndtaParms|unix.NLA_F_NESTED, nil)
	parms.AddRtAttr(ndtpaIfindex, nl.Uint32Attr(uint32(i.Index)))
	parms.AddRtAttr(ndtpaQueueLenBytes, nl.Uint32Attr(q.Bytes))
	req.AddData(parms)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("bounding the queue of neighbours on %s: %w", q.Interface, err)
	}
	return nil
}
