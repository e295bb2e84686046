package mdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/lists"
)

// Timeout of a query, and the pause before the next one.
const (
	queryTimeout = time.Second
	queryPause   = 100 * time.Millisecond
)

// probe queries the job over mDNS for the node's own name, for a liveness probe. why is
// the reason for an unpublished name that a restart would not change; err means that the
// job does not work.
func probe(ctx context.Context, dir *state.Dir) (why string, err error) {
	for {
		p, err := state.Read[state.MDNS](dir)
		switch {
		case err != nil:
			return "", err
		case p == nil:
			return "", errors.New("the mdns job does not run")
		case !p.Announced:
			return p.Why, nil
		}
		// The name may be lost by now, or have other addresses.
		if err = query(ctx, p); err == nil {
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(queryPause):
		}
	}
}

// query asks for the addresses like a plain resolver (RFC 6762 section 5.1): from an
// ephemeral port, to which the answer returns whatever else listens at the port of
// Multicast DNS. It asks the group: packets to the node's own address would reach only
// one of the listeners, perhaps avahi. A TTL of 0 keeps the question on the node.
func query(ctx context.Context, p *state.MDNS) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	source := p.Addresses[0]
	link, err := net.InterfaceByName(p.Interface)
	if err != nil {
		return err
	}
	conn, to, err := listen(ctx, source, link)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	kind := dns.TypeA
	if source.Is6() {
		kind = dns.TypeAAAA
	}
	query := new(dns.Msg).SetQuestion(dns.Fqdn(p.Name), kind)
	data, err := query.Pack()
	if err != nil {
		return err
	}
	if _, err := conn.WriteTo(data, to); err != nil {
		return err
	}
	return await(conn, query, source)
}

// listen opens a socket at the address for questions that stay on the node.
func listen(ctx context.Context, source netip.Addr, link *net.Interface) (net.PacketConn, net.Addr, error) {
	network, to := "udp4", netip.AddrPortFrom(group4, port)
	if source.Is6() {
		network, to = "udp6", netip.AddrPortFrom(group6.WithZone(link.Name), port)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		control := raw.Control(func(fd uintptr) { err = local(int(fd), source, link.Index) })
		return errors.Join(control, err)
	}}
	conn, err := config.ListenPacket(ctx, network, netip.AddrPortFrom(source, 0).String())
	return conn, net.UDPAddrFromAddrPort(to), err
}

// local restricts multicast to listeners of the link on this node.
func local(fd int, source netip.Addr, link int) error {
	if source.Is6() {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, link),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 0),
		)
	}
	return errors.Join(
		unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Address: source.As4(), Ifindex: int32(link)}),
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 0),
	)
}

// await waits for an answer to the query that contains the address.
func await(conn net.PacketConn, query *dns.Msg, want netip.Addr) error {
	var others []string
	buf := make([]byte, maxMessage)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil && len(others) > 0 {
			return fmt.Errorf("%s is answered with %s, not %v", query.Question[0].Name, strings.Join(others, " "), want)
		}
		if err != nil {
			return fmt.Errorf("no answer to the question for %s: %w", query.Question[0].Name, err)
		}
		answer := new(dns.Msg)
		if answer.Unpack(buf[:n]) != nil || !answer.Response || answer.Id != query.Id {
			continue
		}
		got := addressesOf(answer.Answer)
		if slices.Contains(got, want) {
			return nil
		}
		others = append(others, lists.Map(got, netip.Addr.String)...)
	}
}

func addressesOf(rrs []dns.RR) (out []netip.Addr) {
	for _, rr := range rrs {
		var ip net.IP
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A
		case *dns.AAAA:
			ip = rr.AAAA
		}
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}
