package firewall

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The VIPs are on the node's link, where keepalived adds them.
var (
	vips = []netip.Addr{
		netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.11"),
		netip.MustParseAddr("2001:db8::10"), netip.MustParseAddr("2001:db8::11"),
	}
	local = map[netip.Addr]netip.Addr{
		vips[0]: netip.MustParseAddr("192.0.2.1"), vips[1]: netip.MustParseAddr("192.0.2.1"),
		vips[2]: netip.MustParseAddr("2001:db8::1"), vips[3]: netip.MustParseAddr("2001:db8::1"),
	}
	api = Redirect{VIPs: vips, From: 6443, To: 9445, Local: local}
)

// lab is a node with a listener on each port of interest, and a client. Each
// listener answers with its port, and then echoes.
type lab struct {
	t                   *testing.T
	node, client, other *netns.Node
}

func newLab(t *testing.T) *lab {
	t.Helper()
	network := daemon.NewNetwork(t)
	add := func(name string, addresses ...string) *netns.Node {
		return daemon.AddNode(t, network, name, addresses...)
	}
	l := &lab{t: t,
		node:   add("node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32", "192.0.2.11/32", "2001:db8::10/128", "2001:db8::11/128"),
		client: add("client", "192.0.2.2/24", "2001:db8::2/64"),
		other:  add("other", "192.0.2.3/24", "2001:db8::3/64"), // the node that VIPs move to
	}
	for _, port := range []int{6443, 9445, 22623} {
		l.serve(l.node, port)
	}
	return l
}

// do runs f in the node's namespace, and fails the test if f does.
func (l *lab) do(f func() error) {
	l.t.Helper()
	testkit.Must(l.t, l.node.Do(f))
}

func (l *lab) ensure(r Redirect) (changed bool) {
	l.t.Helper()
	l.do(func() (err error) {
		changed, err = ensure(r)
		return err
	})
	return changed
}

// present reads the table back from the kernel and reports whether it is
// exactly what ensure makes of r: each rule, in both hooks, and no other.
func present(r Redirect) (bool, error) {
	conn, err := open()
	if err != nil {
		return false, err
	}
	defer conn.CloseLasting()
	return readsAs(conn, r)
}

func (l *lab) present(r Redirect) (is bool) {
	l.t.Helper()
	l.do(func() (err error) {
		is, err = present(r)
		return err
	})
	return is
}

// nft runs nftables' own program, like another program on the node.
func (l *lab) nft(args ...string) string {
	l.t.Helper()
	return l.runNft("", args...)
}

// load loads a file of rules with nft.
func (l *lab) load(rules string) {
	l.t.Helper()
	l.runNft(rules, "-f", "-")
}

func (l *lab) runNft(input string, args ...string) string {
	l.t.Helper()
	cmd := l.node.Command(context.Background(), "nft", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("nft %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tableIsThere reports, by nft, whether the table exists.
func (l *lab) tableIsThere() bool {
	return strings.Contains(l.nft("list", "tables"), "table inet vipgen\n")
}

func (l *lab) serve(node *netns.Node, port int) {
	l.t.Helper()
	l.serveAt(node, "", port)
}

// serveAt listens on one address; empty for all.
func (l *lab) serveAt(node *netns.Node, address string, port int) {
	l.t.Helper()
	var listener net.Listener
	err := node.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		return err
	})
	testkit.Must(l.t, err)
	l.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, strconv.Itoa(port)+"\n")
				io.Copy(conn, conn)
			}()
		}
	}()
}

// connection is a client's connection to a listener of the lab.
type connection struct {
	net.Conn
	t *testing.T
}

// connect returns a connection and the port of the listener that answered.
func (l *lab) connect(from *netns.Node, addr netip.Addr, port int) (*connection, string) {
	l.t.Helper()
	var conn net.Conn
	err := from.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", netip.AddrPortFrom(addr, uint16(port)).String(), testkit.Patience)
		return err
	})
	testkit.Must(l.t, err)
	l.t.Cleanup(func() { conn.Close() })
	c := &connection{conn, l.t}
	return c, strings.TrimSpace(c.read(5))
}

// read returns the next n bytes, or up to the end of the line.
func (c *connection) read(n int) string {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	var got []byte
	for one := make([]byte, 1); len(got) < n; {
		if _, err := io.ReadFull(c, one); err != nil {
			c.t.Fatalf("read %q, then: %v", got, err)
		}
		if got = append(got, one...); one[0] == '\n' {
			break
		}
	}
	return string(got)
}

// works fails the test unless the connection echoes.
func (c *connection) works(when string) {
	c.t.Helper()
	if _, err := io.WriteString(c, when+"\n"); err != nil {
		c.t.Fatalf("%s: %v", when, err)
	}
	testkit.Equal(testkit.In(c.t, when), when+"\n", c.read(len(when)+1))
}

// reaches fails the test unless the listener on the port answers.
func (l *lab) reaches(from *netns.Node, addr netip.Addr, port int, want string) {
	l.t.Helper()
	conn, got := l.connect(from, addr, port)
	conn.Close()
	testkit.Equal(testkit.In(l.t, from.Name, addr, port), want, got)
}

// keeper is a Keeper on the lab's node.
type keeper struct {
	t                      *testing.T
	redirects              chan Redirect
	serves                 chan bool
	leaving, ready, linger atomic.Bool
	last                   atomic.Pointer[State]
	stop                   context.CancelFunc
	done                   chan struct{}
}

func (l *lab) keep() *keeper {
	k := &keeper{t: l.t, redirects: make(chan Redirect), serves: make(chan bool), done: make(chan struct{})}
	k.last.Store(&State{})
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	run := Keeper{
		Redirects: k.redirects, Serving: k.serves, Leaving: k.leaving.Load, Ready: k.ready.Load,
		Notify: func(s State) { k.last.Store(&s) },
		Linger: func(r Redirect) {
			if k.linger.Load() {
				job.AwaitVIPs(r.VIPs, testkit.Patience)
			}
		},
	}
	go func() {
		defer close(k.done)
		testkit.Check(l.t, l.node.Do(func() error { return run.Run(ctx) })) // which opens its sockets itself
	}()
	l.t.Cleanup(k.end)
	return k
}

func (k *keeper) redirect(r Redirect) { k.redirects <- r }
func (k *keeper) serving(yes bool)    { k.serves <- yes }
func (k *keeper) state() State        { return *k.last.Load() }

// end has the Keeper remove its redirect, and waits for that.
func (k *keeper) end() {
	k.stop()
	<-k.done
}

// A shutdown waits for the VIPs on the node to leave, up to the bound; without a VIP it does
// not wait.
func TestAwaitVIPs(t *testing.T) {
	testkit.Live(t)
	vip, other := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("2001:db8::5")
	n := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.0.2.10/24", "2001:db8::10/64")
	await := func(bound time.Duration) (gone bool) {
		testkit.Must(t, n.Do(func() error { gone = job.AwaitVIPs([]netip.Addr{vip, other}, bound); return nil }))
		return gone
	}
	if !await(time.Hour) {
		t.Error("it is not here")
	}
	testkit.Must(t, n.AddAddress(n.Link, netip.PrefixFrom(other, 128)))
	if await(10 * time.Millisecond) {
		t.Error("it is here")
	}
	done := make(chan bool)
	go func() { done <- await(time.Hour) }()
	testkit.Run(t, n.Command(t.Context(), "ip", "address", "delete", other.String()+"/128", "dev", n.Link))
	if !<-done {
		t.Error("it has gone")
	}
}
