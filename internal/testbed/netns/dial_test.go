package netns

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestDialFromTheNamespace(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	server := addNode(t, n, "server", "192.0.2.1/24", "2001:db8::1/64")
	client := addNode(t, n, "client", "192.0.2.2/24", "2001:db8::2/64")
	for _, addr := range []string{"192.0.2.1", "2001:db8::1"} {
		t.Run(addr, func(t *testing.T) {
			var l net.Listener
			err := server.Do(func() (err error) {
				l, err = net.Listen("tcp", net.JoinHostPort(addr, "0"))
				return err
			})
			testkit.Must(t, err)
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					io.WriteString(conn, conn.RemoteAddr().String())
					conn.Close()
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, err := client.DialContext(ctx, "tcp", l.Addr().String())
			testkit.Must(t, err)
			defer conn.Close()
			seen, err := io.ReadAll(conn)
			if err != nil || string(seen) != conn.LocalAddr().String() {
				t.Errorf("the server saw %q, the client is %v: %v", seen, conn.LocalAddr(), err)
			}
			if _, err := server.DialContext(ctx, "tcp", net.JoinHostPort(addr, "1")); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("dialling a port without a listener: %v", err)
			}
		})
	}
}

func TestDialAcceptsAddressesOnly(t *testing.T) {
	testkit.Live(t)
	node := addNode(t, newNetwork(t), "a")
	for _, address := range []string{"localhost:80", "192.0.2.1", "", "/run/socket"} {
		if conn, err := node.DialContext(t.Context(), "tcp", address); err == nil {
			conn.Close()
			t.Errorf("%q was dialled", address)
		}
	}
}

// Unanswered connections wait without a thread each.
func TestDialKeepsNoThread(t *testing.T) {
	testkit.Live(t)
	node := addNode(t, newNetwork(t), "a", "192.0.2.1/24")
	testkit.Must(t, ip("-n", node.Namespace(), "neighbour", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", node.Link))
	const dials = 100
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	threads := pprof.Lookup("threadcreate").Count()
	for i := range dials {
		all.Go(func() {
			if conn, err := node.DialContext(ctx, "tcp", "192.0.2.9:6443"); err == nil {
				conn.Close()
				t.Error("a host answered")
			}
		})
		testkit.Await(t, "the connection to be asked for", func() bool { return connecting(t, node) > i })
	}
	if more := pprof.Lookup("threadcreate").Count() - threads; more > dials/2 {
		t.Errorf("%d connections took %d threads", dials, more)
	}
}

// connecting counts the node's IPv4 sockets whose SYN is unanswered: state 02 of /proc/net/tcp
// (proc(5)).
func connecting(t *testing.T, node *Node) int {
	t.Helper()
	var table []byte
	err := node.Do(func() (err error) {
		table, err = os.ReadFile("/proc/thread-self/net/tcp")
		return err
	})
	testkit.Must(t, err)
	return bytes.Count(table, []byte(" 090200C0:192B 02 "))
}

func TestPorts(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	addNode(t, n, "a")
	b := addNode(t, n, "b.example")
	testkit.Must(t, b.AddLink("ens224"))
	ports, err := n.Ports()
	testkit.Must(t, err)
	count := map[string]int{}
	for _, node := range ports {
		count[node]++
	}
	if len(ports) != 3 || count["a"] != 1 || count["b.example"] != 2 {
		t.Errorf("ports %v, want one of a and two of b.example", ports)
	}
}
