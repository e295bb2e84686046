package tickle

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

func TestSegment(t *testing.T) {
	for _, tt := range []struct{ vip, client string }{{"192.0.2.5", "198.51.100.9:40001"}, {"2001:db8::5", "[2001:db8:1::9]:40001"}} {
		b := segment(addr(tt.vip), 6443, client(tt.client), 1<<30, 0)
		want := []byte{0x19, 0x2b, 0x9c, 0x41, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, b[16], b[17], 0, 0}
		testkit.Equal(t, want, b)
		sum := slices.Concat(addr(tt.vip).AsSlice(), client(tt.client).Addr().AsSlice(), []byte{0, 6, 0, byte(len(b))}, b)
		testkit.Equal(testkit.In(t, b), 0, vrrp.Checksum(sum))
	}
}

// held is a machine with a VIP and an echo server.
type held struct {
	*netns.Node
	listener net.Listener
}

func (h *held) hold(t *testing.T, vip netip.Addr) {
	t.Helper()
	testkit.Must(t, h.AddAddress("eth0", netip.PrefixFrom(vip, vip.BitLen())))
	testkit.Must(t, h.Do(func() (err error) {
		h.listener, err = net.Listen("tcp", netip.AddrPortFrom(vip, 6443).String())
		return err
	}))
	t.Cleanup(func() { h.listener.Close() })
	go func() {
		for {
			conn, err := h.listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go func() {
				b := make([]byte, 1)
				for {
					if _, err := conn.Read(b); err != nil {
						return
					}
					if _, err := conn.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
}

// connected returns a client's connection that has been used.
func connected(t *testing.T, from *netns.Node, vip netip.Addr) *net.TCPConn {
	t.Helper()
	var conn net.Conn
	testkit.Await(t, "a connection to "+vip.String(), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var err error
		conn, err = from.DialContext(ctx, "tcp", netip.AddrPortFrom(vip, 6443).String())
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	works(t, conn)
	return conn.(*net.TCPConn)
}

func works(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	defer conn.SetDeadline(time.Time{})
	b := []byte{1}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(b); err != nil {
		t.Fatal(err)
	}
}

// An idle client of a machine that is gone gets its connection reset by the new holder of the
// VIP; connections that the new holder has continue, and so do those to a VIP that it does not
// have.
func TestTickle(t *testing.T) {
	for _, tt := range []struct{ vip, first, second, client string }{
		{"192.0.2.5", "192.0.2.11/24", "192.0.2.12/24", "192.0.2.99/24"},
		{"2001:db8::5", "2001:db8::11/64", "2001:db8::12/64", "2001:db8::99/64"},
	} {
		t.Run(tt.vip, func(t *testing.T) {
			network := daemon.NewNetwork(t)
			add := func(name, address string) *netns.Node {
				n, err := network.AddNode(name, netip.MustParsePrefix(address))
				testkit.Must(t, err)
				return n
			}
			vip := addr(tt.vip)
			first, second, from := &held{Node: add("first", tt.first)}, &held{Node: add("second", tt.second)}, add("client", tt.client)
			first.hold(t, vip)
			dead := connected(t, from, vip)

			testkit.Must(t, first.SetLink(false))
			second.hold(t, vip)
			testkit.Must(t, from.Command(t.Context(), "ip", "neighbour", "flush", "dev", "eth0").Run()) // no announcement of the VIP reaches this client
			alive := connected(t, from, vip)
			testkit.Must(t, dead.SetKeepAlive(false)) // which would end it as well, later
			ports := map[uint16][]netip.AddrPort{6443: {local(dead), local(alive), netip.AddrPortFrom(local(dead).Addr(), 1)}}

			testkit.Must(t, second.Do(func() error { return tickle(t.Context(), vip, ports, 0) }))
			dead.SetReadDeadline(time.Now().Add(testkit.Patience))
			if n, err := dead.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection to the machine that is gone: read %d bytes, error %v", n, err)
			}
			works(t, alive)

			err := from.Do(func() error { return tickle(t.Context(), vip, ports, 0) })
			if !errors.Is(err, unix.EADDRNOTAVAIL) {
				t.Errorf("where the VIP is not: %v", err)
			}
		})
	}
}

func local(conn *net.TCPConn) netip.AddrPort {
	a := conn.LocalAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

const (
	masquerade  = "table ip nat { chain post { type nat hook postrouting priority srcnat; oifname eth0 masquerade; }; }\n"
	dropInvalid = `table inet filter {
	chain forward { type filter hook forward priority filter; ct state invalid drop; }
	chain input { type filter hook input priority filter; ct state invalid drop; }
}
`
)

// Clients behind gateways that follow sequence numbers, as Linux does unless set otherwise, have
// their dead connections reset as well, and no living one. A gateway answers segments that it
// discards by resets, which the VIP's holder ignores.
func TestGateways(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		liberal     string // net.netfilter.nf_conntrack_tcp_be_liberal
	}{
		{"Router", "", "0"},
		{"NAT", masquerade, "0"},
		{"NATDropsInvalid", masquerade + dropInvalid, "0"},
		{"FirewallDropsInvalid", dropInvalid, "0"},
		{"NATLiberal", masquerade + dropInvalid, "1"},
		{"FirewallLiberal", dropInvalid, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			network := daemon.NewNetwork(t)
			add := func(name, address string) *netns.Node {
				n, err := network.AddNode(name, netip.MustParsePrefix(address))
				testkit.Must(t, err)
				return n
			}
			vip, gateway := addr("192.0.2.5"), add("gateway", "192.0.2.99/24")
			first, second, from := &held{Node: add("first", "192.0.2.11/24")}, &held{Node: add("second", "192.0.2.12/24")}, add("client", "198.51.100.9/24")
			testkit.Must(t, gateway.AddLink("inner", netip.MustParsePrefix("198.51.100.1/24")))
			route(t, gateway, tt.rules, tt.liberal)
			testkit.Run(t, from.Command(t.Context(), "ip", "route", "add", "default", "via", "198.51.100.1"))
			for _, h := range []*held{first, second} {
				testkit.Run(t, h.Command(t.Context(), "ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.99"))
			}
			first.hold(t, vip)
			dead := connected(t, from, vip)
			testkit.Must(t, first.SetLink(false))
			second.hold(t, vip)
			testkit.Run(t, gateway.Command(t.Context(), "ip", "neighbour", "flush", "all"))
			alive := connected(t, from, vip)
			testkit.Must(t, dead.SetKeepAlive(false))
			seen := func(a netip.AddrPort) netip.AddrPort {
				if strings.Contains(tt.rules, "masquerade") {
					return netip.AddrPortFrom(addr("192.0.2.99"), a.Port())
				}
				return a
			}
			ports := map[uint16][]netip.AddrPort{6443: {seen(local(dead)), seen(local(alive))}}
			for _, r := range rounds {
				testkit.Must(t, second.Do(func() error { return tickle(t.Context(), vip, ports, r.number) }))
				works(t, alive)
			}
			dead.SetReadDeadline(time.Now().Add(testkit.Patience))
			if _, err := dead.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection to the machine that is gone: %v", err)
			}
			works(t, alive)
		})
	}
}

// route has a gateway forward by rules.
func route(t *testing.T, gateway *netns.Node, rules, liberal string) {
	t.Helper()
	if rules != "" {
		load := gateway.Command(t.Context(), "nft", "-f", "-")
		load.Stdin = strings.NewReader(rules)
		testkit.Run(t, load)
		testkit.Run(t, gateway.Command(t.Context(), "sh", "-c", "echo "+liberal+" >/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"))
	}
	testkit.Run(t, gateway.Command(t.Context(), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
}
