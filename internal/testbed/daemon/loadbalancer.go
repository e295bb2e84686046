package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// LoadBalancer is a running HAProxy in master-worker mode, on its own node, which also has the
// addresses of the backends.
type LoadBalancer struct {
	node    *netns.Node
	sandbox *sandbox
	process *process.Process
	socket  string // the admin socket's path on this machine
	loaded  string // printed when a worker has loaded its configuration
}

// NewLoadBalancer starts the generation's HAProxy with a configuration whose admin socket has
// the given path on the node, and waits until it answers there. It ends with the test.
func (g Generation) NewLoadBalancer(t testing.TB, cfg []byte, socket string, addresses ...netip.Prefix) *LoadBalancer {
	t.Helper()
	node, err := NewNetwork(t).AddNode("haproxy", addresses...)
	testkit.Must(t, err)
	s := newSandboxOf(t, g)
	s.write(t, haproxyCfg, cfg)
	s.mkdir(t, socket[:strings.LastIndexByte(socket, '/')])
	lb := &LoadBalancer{node: node, sandbox: s, socket: s.path(socket), loaded: "Loading success."}
	if older(g.HAProxy, "2.5") {
		lb.loaded = " forked"
	}
	lb.process = start(t, "haproxy", s.command(context.Background(), node, g.program(t, "haproxy"), "-W", "-S", masterSocket, "-f", haproxyCfg))
	lb.await(t, "HAProxy to answer at its admin socket", func() bool {
		_, err := lb.ask("show info")
		return err == nil && strings.Contains(lb.process.Output(), lb.loaded)
	})
	return lb
}

// Listen listens on an address of the node.
func (l *LoadBalancer) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := l.node.Do(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener
}

// Silent adds a silent neighbour to the node's network: packets to its address are lost.
func (l *LoadBalancer) Silent(t testing.TB, address string) {
	t.Helper()
	add := l.node.Command(t.Context(), "ip", "neighbour", "add", address, "lladdr", "02:00:00:00:00:09", "dev", l.node.Link)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Dial connects to an address of the node.
func (l *LoadBalancer) Dial(address string) (conn net.Conn, err error) {
	err = l.node.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", address, 10*time.Second)
		return err
	})
	return conn, err
}

// Reload replaces the configuration and makes HAProxy load it: a new worker takes over the
// listening sockets. It sends the command to the master's socket once that answers: after a
// reload the master executes itself once more, and loses commands and SIGUSR2 meanwhile. It
// returns when the new worker runs.
func (l *LoadBalancer) Reload(t testing.TB, cfg []byte) {
	t.Helper()
	loaded := func() int { return strings.Count(l.process.Output(), l.loaded) }
	before := loaded()
	l.sandbox.write(t, haproxyCfg, cfg)
	l.await(t, "an answer of the master", func() bool { return answers(l.MasterSocket()) })
	if _, err := ask(l.MasterSocket(), "reload"); err != nil && !errors.Is(err, errNoAnswer) {
		t.Fatal(err)
	}
	l.await(t, "a new worker", func() bool { return loaded() > before })
}

// MasterSocket returns the path of the master's socket on this machine.
func (l *LoadBalancer) MasterSocket() string { return l.sandbox.path(masterSocket) }

// Info returns one of HAProxy's own figures, such as "Maxconn".
func (l *LoadBalancer) Info(t testing.TB, figure string) int {
	t.Helper()
	text, err := l.ask("show info")
	testkit.Must(t, err)
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(line, ":"); name == figure {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			testkit.Must(t, err)
			return n
		}
	}
	t.Fatalf("no %s in:\n%s", figure, text)
	return 0
}

// Servers returns the state of every server of a backend, such as "UP", by name.
func (l *LoadBalancer) Servers(t testing.TB, backend string) map[string]string {
	t.Helper()
	text, err := l.ask("show stat")
	testkit.Must(t, err)
	out := map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Split(line, ",")
		if len(f) > 17 && f[0] == backend && f[1] != "BACKEND" {
			out[f[1]] = f[17]
		}
	}
	return out
}

// Await waits until the servers of a backend have the given states, and returns how long that
// took.
func (l *LoadBalancer) Await(t testing.TB, backend string, want map[string]string) time.Duration {
	t.Helper()
	began := time.Now()
	l.await(t, fmt.Sprintf("servers to be %v", want), func() bool {
		for name, state := range l.Servers(t, backend) {
			if !strings.HasPrefix(state, want[name]) {
				return false
			}
		}
		return true
	})
	return time.Since(began)
}

func (l *LoadBalancer) await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if l.process.Ended() || time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s:\n%s", what, l.process.Output())
		}
	}
}

// masterSocket is the path of the master's socket on the node.
const masterSocket = "/run/haproxy-master.sock"

func (l *LoadBalancer) ask(command string) (string, error) { return ask(l.socket, command) }

// errNoAnswer is returned for a socket that was closed without an answer.
var errNoAnswer = errors.New("no answer")

// answers reports whether a master answers at its socket, and then keeps it open.
func answers(socket string) bool {
	conn, err := put(socket, "show proc")
	if err != nil {
		return false
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// ask sends a command and returns the answer, up to the end of the connection.
func ask(socket, what string) (string, error) {
	conn, err := put(socket, what)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var b strings.Builder
	for scan := bufio.NewScanner(conn); scan.Scan(); {
		fmt.Fprintln(&b, scan.Text())
	}
	if b.Len() == 0 {
		return "", errNoAnswer
	}
	return b.String(), nil
}

// put sends a command to a socket.
func put(socket, what string) (net.Conn, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := fmt.Fprintln(conn, what); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
