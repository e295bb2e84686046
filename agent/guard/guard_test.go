package guard

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestMerge(t *testing.T) {
	one := Group{Interface: "eth0", RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("192.0.2.12"), addr("192.0.2.11")}, FullTTL: true}}}
	two := Group{Interface: "eth0", RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("192.0.2.13")}, FullTTL: true}, {To: addr("224.0.0.18"), FullTTL: true}}}
	other := Group{Interface: "eth0", IPv6: true, RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("2001:db8::1")}}}}
	anybody := Group{Interface: "eth0", RouterID: 97, Senders: []Sender{{FullTTL: true}}}
	got := Merge([]Group{other, one}, []Group{two, one})
	want := []Group{
		{Interface: "eth0", RouterID: 97, Senders: []Sender{
			{From: []netip.Addr{addr("192.0.2.11"), addr("192.0.2.12"), addr("192.0.2.13")}, FullTTL: true},
			{To: addr("224.0.0.18"), FullTTL: true},
		}},
		other,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := Merge([]Group{one}, []Group{anybody}); len(got) != 1 || !equal(got, Merge([]Group{anybody})) {
		t.Errorf("merged any sender with some: %+v", got)
	}
	if len(one.Senders[0].From) != 2 || one.Senders[0].From[0] != addr("192.0.2.12") {
		t.Errorf("an input of merge is modified: %+v", one)
	}
}

// rig is a node with a guard and another that sends to it.
type rig struct {
	t                    *testing.T
	guard                *Guard
	node, sender         *netns.Node
	host                 *daemon.Host
	received4, received6 *net.IPConn
}

func newRig(t *testing.T) *rig {
	t.Helper()
	testkit.Live(t)
	network := daemon.NewNetwork(t)
	r := &rig{t: t, guard: &Guard{}}
	r.node = daemon.AddNode(t, network, "node", "192.0.2.10/24", "2001:db8::10/64")
	r.sender = daemon.AddNode(t, network, "sender", "192.0.2.11/24", "2001:db8::11/64", "192.0.2.66/24")
	r.host = daemon.NewHost(t, r.node)
	r.do(func() (err error) {
		if r.received4, err = net.ListenIP("ip4:112", nil); err == nil {
			r.received6, err = net.ListenIP("ip6:112", nil)
		}
		return err
	})
	t.Cleanup(func() { r.received4.Close(); r.received6.Close() })
	return r
}

// do runs f on the node.
func (r *rig) do(f func() error) {
	r.t.Helper()
	testkit.Must(r.t, r.node.Do(f))
}

// passes sends a packet and reports whether it arrived; if not, it was dropped and counted.
func (r *rig) passes(from, to string, ttl int, payload ...byte) bool {
	r.t.Helper()
	c := r.received4
	if addr(to).Is6() {
		c = r.received6
	}
	return r.arrives(c, func() error { return sendTo(from, to, ttl, payload) })
}

// arrives sends, and waits until a packet arrives or is dropped.
func (r *rig) arrives(c *net.IPConn, send func() error) (came bool) {
	r.t.Helper()
	before := r.dropped()
	testkit.Must(r.t, r.sender.Do(send))
	testkit.Await(r.t, "the packet to arrive or to be dropped", func() bool {
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _, err := c.ReadFromIP(make([]byte, 100))
		came = err == nil
		return came || r.dropped() > before
	})
	return came
}

func (r *rig) dropped() (n uint64) {
	r.do(r.guard.Poll)
	for _, d := range r.guard.Dropped() {
		n += d.Packets
	}
	return n
}

func sendTo(from, to string, ttl int, payload []byte) error {
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_TTL
	bind := unix.Sockaddr(&unix.SockaddrInet4{Addr: addr4(from)})
	dest := unix.Sockaddr(&unix.SockaddrInet4{Addr: addr4(to)})
	if addr(to).Is6() {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
		bind, dest = &unix.SockaddrInet6{Addr: addr(from).As16()}, &unix.SockaddrInet6{Addr: addr(to).As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, vrrp.Protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, level, option, ttl); err != nil {
		return err
	}
	if err := unix.Bind(fd, bind); err != nil {
		return err
	}
	return unix.Sendto(fd, payload, 0, dest)
}

func addr4(s string) (a [4]byte) {
	if x := addr(s); x.Is4() {
		a = x.As4()
	}
	return a
}

// TestRules compares the text of the rules, without sending a packet.
func TestRules(t *testing.T) {
	testkit.Privileged(t)
	runtime.LockOSThread() // never unlocked, so that the namespace ends with the thread
	testkit.Must(t, unix.Unshare(unix.CLONE_NEWNET))
	testkit.Must(t, (&Guard{}).Place([]Group{{Interface: "eth0", RouterID: 97, Senders: []Sender{
		{From: []netip.Addr{addr("192.0.2.11")}, FullTTL: true}, {To: addr("224.0.0.18")},
	}}}))
	rules := testkit.Run(t, exec.Command(testkit.Program(t, "nft"), "list", "table", "inet", TableName))
	group := `meta l4proto vrrp iifname "eth0" @th,8,8 0x61 `
	testkit.Contains(t, string(rules), "elements = { 192.0.2.11 }", group+"ip ttl 255 ip saddr @senders-0-0 accept",
		group+"ip daddr 224.0.0.18 accept", group+"counter packets 0 bytes 0 drop")
}

// TestGuard filters by family, router ID, source and TTL; packets outside of the node's groups
// pass.
func TestGuard(t *testing.T) {
	r := newRig(t)
	groups := []Group{
		{Interface: "eth0", RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("192.0.2.11")}, FullTTL: true}}},
		{Interface: "eth0", IPv6: true, RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("2001:db8::11")}}}},
	}
	r.do(func() error { return r.guard.Place(groups) })
	for _, x := range []struct {
		from, to string
		ttl, id  int
		want     bool
	}{
		{"192.0.2.11", "192.0.2.10", 255, 97, true},
		{"192.0.2.11", "192.0.2.10", 254, 97, false},
		{"192.0.2.66", "192.0.2.10", 255, 97, false},
		{"192.0.2.66", "192.0.2.10", 10, 98, true},
		{"2001:db8::11", "2001:db8::10", 64, 97, true},
		{"2001:db8::11", "2001:db8::10", 64, 98, true},
	} {
		testkit.Equal(t, x.want, r.passes(x.from, x.to, x.ttl, 0x31, byte(x.id), 100, 1, 0, 10, 0, 0, 192, 0, 2, 5))
	}

	groups[1].Senders = []Sender{{To: addr("ff02::12"), FullTTL: true}}
	counted := r.dropped()
	r.do(func() error { return r.guard.Place(groups) })
	if r.passes("2001:db8::11", "2001:db8::10", 255, 0x31, 97, 100, 1, 0, 10, 0, 0) {
		t.Error("unicast passes where multicast is asked for")
	}
	testkit.Equal(testkit.In(t, "packets counted after the rules changed"), counted+1, r.dropped())

	r.do(r.guard.Remove)
	if !r.passes("192.0.2.66", "192.0.2.10", 10, 0x31, 97, 100, 1, 0, 10, 0, 0) {
		t.Error("a packet is dropped without a guard")
	}
	r.do((&Guard{}).Remove) // there is none
}

// TestFragments: the first fragment of an IPv6 packet has the router ID, or the kernel drops
// the packet (RFC 8200 section 4.5).
func TestFragments(t *testing.T) {
	r := newRig(t)
	r.do(func() error {
		return r.guard.Place([]Group{{Interface: "eth0", IPv6: true, RouterID: 97, Senders: []Sender{{From: []netip.Addr{addr("2001:db8::77")}}}}})
	})
	first := []byte{vrrp.Protocol, 0, 1, 4, 0, 0, 0, 0, 0x31, 97, 100, 1, 0, 10, 0, 0} // destination options, 8 bytes of padding
	second := addr("2001:db8::5").AsSlice()
	if r.arrives(r.received6, func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for n, part := range [][]byte{first, second} {
			// RFC 8200 section 4.5: next header, offset in 8 bytes, more to come, ID.
			fragment := append([]byte{60, 0, 0, byte(n<<4 | 1 - n), 0, 0, 0, 9}, part...)
			ip := []byte{0x60, 0, 0, 0, 0, 0, 44, 255}
			binary.BigEndian.PutUint16(ip[4:], uint16(len(fragment)))
			from, to := addr("2001:db8::11").As16(), addr("2001:db8::10").As16()
			ip = append(append(append(ip, from[:]...), to[:]...), fragment...)
			if err := unix.Sendto(fd, ip, 0, &unix.SockaddrInet6{Addr: to}); err != nil {
				return err
			}
		}
		return nil
	}) {
		t.Error("fragments pass the guard")
	}
}

// TestPutBack: removed rules are restored, and a set holds 2,000 senders.
func TestPutBack(t *testing.T) {
	r := newRig(t)
	g := Group{Interface: "eth0", IPv6: true, RouterID: 97}
	var from []netip.Addr
	for i := range 2000 {
		from = append(from, addr(fmt.Sprintf("2001:db8::1:%x", i)))
	}
	g.Senders = []Sender{{From: append(from, addr("2001:db8::11"))}}
	r.do(func() error { return r.guard.Place([]Group{g}) })
	if !r.passes("2001:db8::11", "2001:db8::10", 64, 0x31, 97, 100, 1, 0, 10, 0, 0) {
		t.Error("one of 2,001 senders is dropped")
	}
	for _, ruin := range []string{"flush ruleset", "flush table inet " + TableName, "delete table inet " + TableName} {
		if out, err := r.host.Run(nil, "nft", ruin); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r.do(r.guard.Poll)
		out, err := r.host.Run(nil, "nft", "list table inet "+TableName)
		if err != nil || !strings.Contains(out, "drop") {
			t.Errorf("after %s: %v\n%s", ruin, err, out)
		}
	}
	if _, n := r.guard.InPlace(); n != 3 {
		t.Errorf("put back %d times", n)
	}
}

// TestRefused: settings without a valid rule leave no guard, the previous one included.
func TestRefused(t *testing.T) {
	r := newRig(t)
	good := Group{Interface: "eth0", RouterID: 97, Senders: []Sender{{FullTTL: true}}}
	for _, bad := range []Group{
		{Interface: "an-interface-too-long", RouterID: 1},
		{Interface: "eth0"},
		{Interface: "eth0", RouterID: 256},
		{Interface: "eth0", RouterID: 1, Senders: []Sender{{From: []netip.Addr{addr("2001:db8::1")}}}},
		{Interface: "eth0", IPv6: true, RouterID: 1, Senders: []Sender{{To: addr("224.0.0.18")}}},
	} {
		r.do(func() error { return r.guard.Place([]Group{good}) })
		if err := r.node.Do(func() error { return r.guard.Place([]Group{good, bad}) }); err == nil {
			t.Errorf("%+v is placed", bad)
		}
		if out, err := r.host.Run(nil, "nft", "list table inet "+TableName); err == nil {
			t.Errorf("there are rules after %+v:\n%s", bad, out)
		}
	}
	// Names that nft does not accept unquoted.
	for _, name := range []string{"wg+0", "eth0.100", `a"b`} {
		r.do(func() error { return r.guard.Place([]Group{{Interface: name, RouterID: 97}}) })
	}
}
