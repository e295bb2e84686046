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
)

// How long a probe waits for an answer, and then until it asks once more.
const (
	askFor   = time.Second
	askAgain = 100 * time.Millisecond
)

// probe asks the job over mDNS for the node's own name, for a liveness probe. It
// returns why where nothing is published for a reason that starting the job
// again would not change; err is about a job that does not work.
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
		// The name may be lost or stand for other addresses by now.
		if err = askOnce(ctx, p); err == nil {
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(askAgain):
		}
	}
}

// askOnce asks for the addresses as a plain resolver does (RFC 6762 section
// 5.1): from a port of its own, where the answer comes to, whoever else on the
// node listens at the port of Multicast DNS. It asks the group, since packets to
// the node's own address reach one of those listeners, which may be avahi. With
// 0 hops nobody beyond the node hears the question.
func askOnce(ctx context.Context, p *state.MDNS) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
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

// listen opens a socket at the address, for questions that do not leave the node.
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

// local makes what is multicast go to the link's listeners on this node alone.
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

// await waits for an answer to the query that has the address.
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
		for _, a := range got {
			others = append(others, a.String())
		}
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
