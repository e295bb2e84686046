package firewall

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// leave moves VIPs to the other node.
func (l *lab) leave(gone ...netip.Addr) { l.t.Helper(); l.move(l.node, l.other, gone...) }

// move moves VIPs from one node to another, and announces the new link address to the client.
func (l *lab) move(from, to *netns.Node, list ...netip.Addr) {
	l.t.Helper()
	ip := func(n *netns.Node, args ...string) {
		l.t.Helper()
		if out, err := n.Command(context.Background(), "ip", args...).CombinedOutput(); err != nil {
			l.t.Fatalf("ip %s on %s: %v: %s", strings.Join(args, " "), n.Name, err, out)
		}
	}
	for _, vip := range list {
		address := netip.PrefixFrom(vip, vip.BitLen()).String()
		ip(from, "address", "delete", address, "dev", from.Link)
		ip(to, "address", "add", address, "dev", to.Link, "nodad")
	}
	ip(l.client, "neighbour", "flush", "dev", l.client.Link)
}

// A request that is in flight when its VIP leaves a running node is answered, and the new
// holder then resets the connection: no client waits for its own time-out.
func TestHardCase43OpenRequestIsAnswered(t *testing.T) {
	l := newLab(t)
	l.ensure(Redirect{VIPs: vips, From: 443, To: 8443, Local: local})
	var listener net.Listener
	l.do(func() (err error) {
		listener, err = net.Listen("tcp", ":8443")
		return err
	})
	defer listener.Close()
	left := make(chan struct{})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
				io.WriteString(conn, "taken\n")
				<-left
				io.WriteString(conn, "answer\n")
				io.Copy(io.Discard, r)
			}()
		}
	}()
	var conns []*connection
	for _, vip := range []netip.Addr{vips[0], vips[2]} {
		var conn net.Conn
		if err := l.client.Do(func() (err error) {
			conn, err = net.DialTimeout("tcp", netip.AddrPortFrom(vip, 443).String(), testkit.Patience)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &connection{conn, t}
		io.WriteString(c, "request\n")
		if got := c.read(6); got != "taken\n" {
			t.Fatalf("%q", got)
		}
		conns = append(conns, c)
	}
	l.leave(vips...)
	close(left)
	for _, c := range conns {
		testkit.Equal(t, "answer\n", c.read(7))
		if err := c.ends(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after the answer: %v", err)
		}
	}
}

// ends waits until an idle connection is closed.
func (c *connection) ends() error {
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, err := c.Read(make([]byte, 1))
	return err
}

// Idle clients, remote ones and programs on the node itself, are notified that their VIP has
// left the node. Connections to VIPs that the node still holds are kept.
func TestHardCase43IdleClientsAreReset(t *testing.T) {
	l := newLab(t)
	l.ensure(api)
	log := slog.New(slog.DiscardHandler)
	var d departures
	look := func() {
		t.Helper()
		l.do(func() error { d.update(api, log); return nil })
	}
	look()
	connect := func(from *netns.Node, vip netip.Addr) *connection {
		t.Helper()
		c, port := l.connect(from, vip, 6443)
		if port != "9445" {
			t.Fatalf("answer from port %s", port)
		}
		return c
	}
	first, second, third := connect(l.client, vips[0]), connect(l.client, vips[1]), connect(l.client, vips[2])
	here := connect(l.node, vips[0])
	direct, _ := l.connect(l.client, netip.MustParseAddr("192.0.2.1"), 6443)

	l.leave(vips[0])
	look()
	if err := here.ends(); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a program on the node does not learn that the VIP has left")
	}
	second.works("another VIP has left")
	third.works("another VIP has left")

	l.leave(vips[1])
	look()
	for i, c := range []*connection{first, second} {
		if err := c.ends(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client %d: %v", i, err)
		}
	}
	third.works("the other family's VIPs have left")
	l.leave(vips[2], vips[3])
	look()
	if err := third.ends(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("IPv6: %v", err)
	}
	direct.works("all VIPs have left")
}

// open returns connections from both sides, over both families.
func (l *lab) open(want string) []*connection {
	l.t.Helper()
	var out []*connection
	for _, from := range []*netns.Node{l.client, l.node} {
		for _, vip := range []netip.Addr{vips[0], vips[2]} {
			conn, port := l.connect(from, vip, 6443)
			if port != want {
				l.t.Fatalf("answer from port %s, want %s", port, want)
			}
			out = append(out, conn)
		}
	}
	return out
}

func allWork(conns []*connection, when string) {
	for _, conn := range conns {
		conn.t.Helper()
		conn.works(when)
	}
}

// Established connections are kept, whatever happens to the rules. The first ones were made
// before the kernel tracked connections, which picks them up midstream.
func TestEstablishedConnectionsStay(t *testing.T) {
	l := newLab(t)
	direct := l.open("6443")
	k := l.placed()
	allWork(direct, "the redirect was placed")

	redirected := l.open("9445")
	l.nft("flush", "ruleset")
	testkit.Await(t, "the redirect", func() bool { return l.present(api) })
	allWork(direct, "flushed and restored")
	allWork(redirected, "flushed and restored")

	k.serving(false)
	testkit.Await(t, "its end", func() bool { return !k.state().InPlace })
	allWork(direct, "withdrawn")
	allWork(redirected, "withdrawn")
	direct = append(direct, l.open("6443")...)

	k.serving(true)
	testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
	allWork(direct, "placed again")
	allWork(redirected, "placed again")
	l.open("9445")
	k.end()
	allWork(direct, "removed")
}
