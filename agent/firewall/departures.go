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

// answering is how long connections may go on after their VIP has left the node: what was
// asked before is answered meanwhile. A client that sends anything ends its connection
// itself, as that reaches the new holder, which does not know it.
const answering = 500 * time.Millisecond

// departures ends the connections of VIPs that have left the node, so that clients that
// only listen, as to a watch, learn of it.
type departures struct{ here []netip.Addr }

// look compares with what was on the node when it was called last. It is called when
// addresses changed and have been quiet for a moment (nodeip.Watch), in which answers
// that were on their way have gone out.
func (d *departures) look(r Redirect, log *slog.Logger) {
	here, err := job.Here(r.VIPs)
	if err != nil {
		return // it is looked again
	}
	gone := slices.DeleteFunc(d.here, func(vip netip.Addr) bool { return slices.Contains(here, vip) })
	d.here = here
	if len(gone) > 0 {
		endConnections(r.ownOf(gone, here, false), gone, log)
	}
}

// ownOf says whether a connection with such an address and port of this node is one of VIPs
// that are gone: it has the VIP itself, or what redirected connections get.
//
// Which VIP a redirected connection came by is not seen from its socket, so it stays where
// another VIP with the same address of the node is still here. programs says whether those
// of programs on the node count too that go to HAProxy wherever the VIP is.
func (r Redirect) ownOf(gone, here []netip.Addr, programs bool) func(own, peer netip.AddrPort) bool {
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
// hear of it. Connections that have the VIP itself for their own address can say nothing
// any more: they are those of programs on this node, which hear of it, and of clients of
// its API server while there was no redirect.
//
// It needs CAP_NET_ADMIN, and a kernel with CONFIG_INET_DIAG_DESTROY.
func endConnections(of func(own, peer netip.AddrPort) bool, gone []netip.Addr, log *slog.Logger) {
	open, err := connections(of)
	count := 0
	for _, c := range open {
		switch failed := destroy(c); {
		case failed == nil:
			count++
		case !errors.Is(failed, unix.ENOENT): // it has ended meanwhile
			err = fmt.Errorf("ending a connection: %w", explain(failed))
		}
	}
	if count > 0 {
		log.Info("connections ended with their VIPs", "vips", gone, "connections", count)
	}
	if err != nil {
		log.Warn("connections of VIPs that have left the node go on: their clients may wait", "vips", gone, "error", err)
	}
}

// States of sockets that stay as they are (include/net/tcp_states.h).
const (
	timeWait  = 6
	listening = 10
)

// connections are the TCP connections with such addresses and ports, those that could be
// listed if not all could.
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

// destroy resets a connection (SOCK_DESTROY of sock_diag(7)): struct inet_diag_req_v2 of
// linux/inet_diag.h.
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
