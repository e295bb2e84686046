package lab

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// away are rules that drop traffic of API VIPs, as if their holder were down.
const away = `add table inet away
add chain inet away output { type filter hook output priority 0; }
add rule inet away output ip daddr 192.0.2.5 counter drop
add rule inet away output ip6 daddr 2001:db8::5 counter drop
`

// Programs on a node reach the API while the node cannot reach the VIPs' holder at all, over
// existing connections and new ones.
func testOwnConnections(t *testing.T, c *cluster) {
	machine, broken := testkit.StartStopwatch(), 0
	fails := func(n *node, when string, err error) {
		t.Helper()
		t.Logf("%s, %s: %v", n.Name, when, err)
		broken++
	}
	for _, n := range []*node{c.backup(t), c.node("worker-0")} {
		n.awaitOwn(t)
		connect := func(when string) (out []connection) {
			t.Helper()
			for _, vip := range []netip.Addr{api, api6} {
				conn, err := connectFrom(t, n.Host.Node, vip)
				if err != nil {
					fails(n, when, err)
					continue
				}
				out = append(out, conn)
			}
			return out
		}
		ask := func(when string, all []connection) {
			t.Helper()
			for _, conn := range all {
				if err := conn.ask(); err != nil {
					fails(n, conn.RemoteAddr().String()+", "+when, err)
				}
			}
		}
		before := connect("at first")
		ask("at first", before)
		c.must(n.Run(strings.NewReader(away), "nft", "-f", "-"))
		ask("without the holder", before)
		after := connect("without the holder")
		ask("without the holder, a new one", after)
		c.must(n.Run(strings.NewReader("delete table inet away\n"), "nft", "-f", "-"))
		show(t, fmt.Sprintf("%s$ curl -k https://192.0.2.5:6443/readyz   # while the VIP's holder cannot be reached", n.Name), "ok, over connections of before and new ones")
	}
	// An HAProxy without CPU time considers API servers down, and ends connections.
	testkit.Promise(t, "connections of nodes themselves that fail", broken, 0, 10, machine.End())
}

// awaitOwn waits until the node's own connections go to its HAProxy.
func (n *node) awaitOwn(t *testing.T) {
	t.Helper()
	testkit.Await(t, "HAProxy on "+n.Name+" to be there for the node's own connections", func() bool {
		s, alive := published[state.Firewall](n)
		return alive && s.Own
	})
}

// watches are idle connections of programs on a node, like watches while nothing happens.
type watches struct {
	from   *node
	all    []*listener
	before map[string]state.Silenced // counters of the HAProxy there
}

type listener struct {
	connection
	server string     // the API server's node
	ended  chan error // by the node's peer, or by a deadline
}

// startWatches makes programs of a node listen on several connections through each
// control-plane node.
func (n *node) startWatches(t *testing.T) *watches {
	t.Helper()
	n.awaitOwn(t)
	s, _ := published[state.HAProxy](n)
	out := &watches{from: n, before: s.Silenced}
	for range 9 {
		conn, err := connectFrom(t, n.Host.Node, api)
		testkit.Must(t, err)
		w := &listener{connection: conn, ended: make(chan error, 1)}
		testkit.Must(t, w.ask())
		w.SetDeadline(time.Time{})
		w.server = w.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
		go func() {
			_, err := w.reader.Peek(1)
			w.ended <- err
		}()
		out.all = append(out.all, w)
	}
	return out
}

// without checks that the connections through a node that is gone are ended for the programs,
// which do nothing themselves, and that the others work.
func (w *watches) without(t *testing.T, gone *node) {
	t.Helper()
	ended := 0
	testkit.Await(t, "HAProxy on "+w.from.Name+" to end its connections to "+gone.Name, func() bool {
		s, _ := published[state.HAProxy](w.from)
		ended = s.Silenced[gone.Name].Connections - w.before[gone.Name].Connections
		return ended > 0
	})
	works := 0
	for _, one := range w.all {
		if one.server != gone.Name {
			one.SetReadDeadline(time.Unix(1, 0)) // no longer idle
		}
		select {
		case err := <-one.ended:
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = one.ask()
			}
			if err == nil {
				works++
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a connection to the API server of %s hangs", one.server)
			}
		case <-time.After(testkit.Patience):
			t.Errorf("a connection to the API server of %s, which is gone, continues", one.server)
		}
	}
	if works == 0 {
		t.Error("no connection is left")
	}
	show(t, w.from.Name+"$ connections to the API that only listen", fmt.Sprintf("%d, of which %d go on; HAProxy here ended %d to %s", len(w.all), works, ended, gone.Name))
}
