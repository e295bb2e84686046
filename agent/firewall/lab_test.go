package firewall

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	if got := c.read(len(when) + 1); got != when+"\n" {
		c.t.Errorf("%s: %q came back", when, got)
	}
}

// reaches fails the test unless the listener on the port answers.
func (l *lab) reaches(from *netns.Node, addr netip.Addr, port int, want string) {
	l.t.Helper()
	conn, got := l.connect(from, addr, port)
	conn.Close()
	if got != want {
		l.t.Errorf("from %s to %v port %d: answer from port %s, want %s", from.Name, addr, port, got, want)
	}
}

// keeperProc is a process with a Keeper in the lab's node.
type keeperProc struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Writer
	done chan struct{}

	mu   sync.Mutex
	last report
	log  bytes.Buffer
}

// keep starts a Keeper that has no capability but NET_ADMIN, and no program to
// run: its PATH is empty.
func (l *lab) keep() *keeperProc { return l.keepWith("-all,+net_admin") }

func (l *lab) keepWith(capabilities string) *keeperProc {
	l.t.Helper()
	self, err := os.Executable()
	testkit.Must(l.t, err)
	k := &keeperProc{t: l.t, done: make(chan struct{})}
	k.cmd = l.node.Command(context.Background(), "setpriv", "--bounding-set="+capabilities, "--no-new-privs", "--pdeathsig=KILL",
		"env", "PATH=", keeperEnv+"=1", self)
	k.cmd.Stderr = os.Stderr
	out, err1 := k.cmd.StdoutPipe()
	in, err2 := k.cmd.StdinPipe()
	if err1 != nil || err2 != nil {
		l.t.Fatal(err1, err2)
	}
	k.in = in
	testkit.Must(l.t, k.cmd.Start())
	go k.follow(out)
	l.t.Cleanup(func() {
		k.cmd.Process.Kill()
		<-k.done
		if l.t.Failed() {
			l.t.Logf("states:\n%s", &k.log)
		}
	})
	return k
}

func (k *keeperProc) follow(out io.Reader) {
	defer close(k.done)
	for decoder := json.NewDecoder(out); ; {
		var r report
		if decoder.Decode(&r) != nil {
			break
		}
		k.mu.Lock()
		k.last = r
		json.NewEncoder(&k.log).Encode(r)
		k.mu.Unlock()
	}
	k.cmd.Wait()
}

func (k *keeperProc) send(o order) {
	k.t.Helper()
	testkit.Must(k.t, json.NewEncoder(k.in).Encode(o))
}

func (k *keeperProc) redirect(r Redirect) { k.send(order{Redirect: &r}) }
func (k *keeperProc) serving(yes bool)    { k.send(order{Serving: &yes}) }

func (k *keeperProc) state() report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// end sends the signal and waits for the end of the process.
func (k *keeperProc) end(signal syscall.Signal) {
	k.t.Helper()
	k.cmd.Process.Signal(signal)
	select {
	case <-k.done:
	case <-time.After(testkit.Patience):
		k.t.Fatalf("the process outlived %v", signal)
	}
}
