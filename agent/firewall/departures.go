package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/internal/netdump"
)

// answering is how long connections may continue after their VIP left the node, so that
// pending answers are sent. A client that sends anything ends its connection itself: the
// packet reaches the new holder, which does not know it.
const answering = 500 * time.Millisecond

// departures ends the connections of VIPs that left the node, so that clients that only
// listen, for example to a watch, notice.
type departures struct{ here []netip.Addr }

// update compares the VIPs on the node with those at the last call. It is called after
// changes of addresses have settled (nodeip.Watch), when answers in transit have been
// sent.
func (d *departures) update(r Redirect, log *slog.Logger) {
	here, err := job.Here(r.VIPs)
	if err != nil {
		return // the next change tries again
	}
	gone := slices.DeleteFunc(d.here, func(vip netip.Addr) bool { return slices.Contains(here, vip) })
	d.here = here
	if len(gone) > 0 {
		endConnections(r.belongsTo(gone, here, false), gone, log)
	}
}

// belongsTo returns a predicate for connections, by this node's address and port, of VIPs
// that are gone: they use the VIP itself, or the target of redirected connections.
//
// The socket does not show through which VIP a redirected connection came, so it stays
// while another VIP with the same target address is here. programs includes connections
// of programs on the node that go to HAProxy wherever the VIP is.
func (r Redirect) belongsTo(gone, here []netip.Addr, programs bool) func(own, peer netip.AddrPort) bool {
	var to []netip.AddrPort
	for _, vip := range gone {
		local := r.Local[vip]
		shared := func(other netip.Addr) bool { return r.Local[other] == local }
		if local.IsValid() && !slices.ContainsFunc(here, shared) {
			to = append(to, netip.AddrPortFrom(local, uint16(r.To)))
		}
	}
	return func(own, peer netip.AddrPort) bool {
		return slices.Contains(gone, own.Addr()) || slices.Contains(to, own) && (programs || peer.Addr() != own.Addr())
	}
}

// endConnections resets the connections of VIPs that are gone. Clients of redirected ones
// receive the reset. Connections to the VIP itself cannot send any more: they belong to
// programs on this node, which are notified, and to clients of its API server from a time
// without a redirect.
//
// It needs CAP_NET_ADMIN, and a kernel with CONFIG_INET_DIAG_DESTROY.
func endConnections(of func(own, peer netip.AddrPort) bool, gone []netip.Addr, log *slog.Logger) {
	open, err := connections(of)
	count := 0
	for _, c := range open {
		switch failed := destroy(c); {
		case failed == nil:
			count++
		case !errors.Is(failed, unix.ENOENT): // ended meanwhile
			err = fmt.Errorf("ending a connection: %w", explain(failed))
		}
	}
	if count > 0 {
		log.Info("connections ended with their VIPs", "vips", gone, "connections", count)
	}
	if err != nil {
		log.Warn("cannot end connections of VIPs that left the node: their clients may wait", "vips", gone, "error", err)
	}
}

// States of sockets without a connection to end (include/net/tcp_states.h).
const (
	timeWait  = 6
	listening = 10
)

// connections returns the matching TCP connections; with an error, those that could be
// listed.
func connections(of func(own, peer netip.AddrPort) bool) (out []*netlink.Socket, failed error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := netdump.List(func() ([]*netlink.Socket, error) { return netlink.SocketDiagTCP(family) })
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			failed = fmt.Errorf("listing connections: %w", explain(err))
		}
		for _, s := range all {
			own, peer := addrPort(s.ID.Source, s.ID.SourcePort), addrPort(s.ID.Destination, s.ID.DestinationPort)
			if s.State != timeWait && s.State != listening && of(own, peer) {
				out = append(out, s)
			}
		}
	}
	return out, failed
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

// destroy resets a connection (SOCK_DESTROY of sock_diag(7)) with struct inet_diag_req_v2
// of linux/inet_diag.h.
func destroy(s *netlink.Socket) error {
	source, destination := s.ID.Source, s.ID.Destination
	if s.Family == unix.AF_INET {
		source, destination = source.To4(), destination.To4()
	}
	data := []byte{s.Family, unix.IPPROTO_TCP, 0, 0}
	data = binary.NativeEndian.AppendUint32(data, 1<<s.State)
	data = binary.BigEndian.AppendUint16(data, s.ID.SourcePort)
	data = binary.BigEndian.AppendUint16(data, s.ID.DestinationPort)
	for _, address := range [][]byte{source, destination} {
		data = append(data, address...)
		data = append(data, make([]byte, 16-len(address))...)
	}
	for _, word := range []uint32{s.ID.Interface, s.ID.Cookie[0], s.ID.Cookie[1]} {
		data = binary.NativeEndian.AppendUint32(data, word)
	}
	request := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	request.AddRawData(data)
	_, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	return err
}
