package bgp_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// answer is a request of the client.
type answer struct {
	began time.Time
	by    string // empty: none in time
}

// requests are requests of the client at all times, each on a connection of its own, so that
// routers choose a node for each.
type requests struct {
	mu   sync.Mutex
	list []answer
	stop func()
}

// patience is how long a request waits: what is lost then would be sent again after a second.
// It bounds how exactly the end of an outage is known.
const patience = 100 * time.Millisecond

func (l *racks) ask(vip netip.Addr) string {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return l.client.DialContext(ctx, "tcp", address)
	}}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+netip.AddrPortFrom(vip, 9445).String()+"/", nil)
	reply, err := transport.RoundTrip(r)
	if err != nil {
		return ""
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// flood sends requests until the result's stop is called.
func (l *racks) flood(vip netip.Addr) *requests {
	r := &requests{}
	var over atomic.Bool
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for !over.Load() {
				a := answer{began: time.Now()}
				a.by = l.ask(vip)
				r.mu.Lock()
				r.list = append(r.list, a)
				r.mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	r.stop = func() { over.Store(true); all.Wait() }
	l.t.Cleanup(r.stop)
	return r
}

// by counts requests that began since a moment, by the node that answered.
func (r *requests) by(since time.Time) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, a := range r.list {
		if a.began.After(since) && a.by != "" {
			out[a.by]++
		}
	}
	return out
}

// lost returns the number of requests without an answer, and how long after a moment the last
// one began.
func (r *requests) lost(since time.Time) (n int, last time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.list {
		if a.by == "" && a.began.After(since.Add(-patience)) {
			n++
			last = max(last, a.began.Sub(since))
		}
	}
	return n, last
}

// awaitAll waits until each of these nodes answers at a VIP, and no other, several times.
func (l *racks) awaitAll(vip netip.Addr, names ...string) {
	l.t.Helper()
	slices.Sort(names)
	testkit.AwaitWithin(l.t, time.Minute, fmt.Sprintf("%s to be answered by %v", vip, names), func() bool {
		got := map[string]bool{}
		for range 24 {
			if by := l.ask(vip); by != "" {
				got[by] = true
			}
		}
		return slices.Equal(slices.Sorted(maps.Keys(got)), names)
	}, func() string { return l.states() })
}

func (l *racks) states() (out string) {
	for name, n := range l.nodes {
		s, err := state.Read[state.BGP](n.state)
		out += fmt.Sprintf("%s: %+v %v\n", name, s, err)
	}
	return out
}

// TestRacks: every node of both racks announces its VIPs; what happens to clients when one
// stops as planned, loses HAProxy and loses power.
func TestRacks(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster)
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitAll(vip6, "n1", "n2", "n3")
	l.noAddress()
	for _, vip := range []netip.Addr{vip4, vip6} {
		r := l.flood(vip)
		testkit.Await(t, "requests to each node", func() bool { return len(r.by(time.Time{})) >= 3 })
		t.Logf("%s by node: %v", vip, r.by(time.Time{}))
		r.stop()
	}

	l.measure("planned stop of n2", func() { l.nodes["n2"].stop(t) }, "n1", "n3")
	l.startAgent(l.nodes["n2"], cluster)
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitBFD()

	l.measure("dead HAProxy of n2", func() {
		for _, h := range l.nodes["n2"].haproxy {
			h.Close()
		}
	}, "n1", "n3")
	l.balance(l.nodes["n2"])
	l.awaitAll(vip4, "n1", "n2", "n3")

	l.measure("power loss of n1", func() { testkit.Must(t, l.nodes["n1"].SetLink(false)) }, "n2", "n3")
}

// TestOnePath: without ECMP one node at a time has the VIPs, in both racks' routers and behind them.
func TestOnePath(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, strings.Replace(cluster, "    localASN:", "    ecmp: false\n    localASN:", 1))
	l.awaitBFD()
	l.awaitAll(vip4, "n1")
	l.awaitAll(vip6, "n1")
	l.measure("planned stop of n1", func() { l.nodes["n1"].stop(t) }, "n2")
	l.measure("power loss of n2", func() { testkit.Must(t, l.nodes["n2"].SetLink(false)) }, "n3")
}

// measure does something to the nodes under load, waits until only these answer, and logs
// what clients lost.
func (l *racks) measure(what string, do func(), left ...string) {
	l.t.Helper()
	r := l.flood(vip4)
	time.Sleep(500 * time.Millisecond) // of load before
	began := time.Now()
	do()
	did := time.Since(began)
	testkit.AwaitWithin(l.t, 20*time.Second, "requests to end at "+strings.Join(left, ", "), func() bool {
		recent := r.by(time.Now().Add(-400 * time.Millisecond))
		return slices.Equal(slices.Sorted(maps.Keys(recent)), left)
	}, l.states)
	r.stop()
	n, last := r.lost(began)
	// Sessions of other neighbors that end are the test machine's doing: BFD without CPU time.
	for _, path := range l.logs {
		for line := range strings.Lines(string(testkit.ReadFile(l.t, path))) {
			if at, err := time.ParseInLocation("2006/01/02 15:04:05", line[:min(len(line), 19)], time.Local); err == nil && !at.Before(began.Truncate(time.Second)) && strings.Contains(line, " Down ") {
				l.t.Logf("%s: %s", filepath.Base(filepath.Dir(path)), strings.TrimSpace(line))
			}
		}
	}
	l.t.Logf("%s: took %v; %d of %d requests lost, the last began %v after", what, did.Round(time.Millisecond), n, len(r.list), last.Round(time.Millisecond))
}

// awaitBFD waits until BFD watches all sessions.
func (l *racks) awaitBFD() {
	l.t.Helper()
	testkit.AwaitWithin(l.t, time.Minute, "BFD with all routers", func() bool {
		for _, n := range l.nodes {
			s, err := state.Read[state.BGP](n.state)
			if err != nil || s == nil || slices.ContainsFunc(s.Peers, func(p state.BGPPeer) bool { return !p.Established() || p.BFD != "up" }) {
				return false
			}
		}
		return true
	}, l.states)
}

// noAddress checks that a VIP is on no interface of any node, though all of them accept it:
// duplicate address detection has nothing to detect, and cannot take the VIP from a node
// that routers send packets to.
func (l *racks) noAddress() {
	l.t.Helper()
	for name, n := range l.nodes {
		l.sysctl(n.Node, "net.ipv6.conf.all.accept_dad=1", "net.ipv6.conf.default.accept_dad=1")
		testkit.Lacks(l.t, l.run(n.Node, "ip", "address"), vip4.String(), vip6.String())
		routes := l.run(n.Node, "ip", "route", "show", "table", "local") + l.run(n.Node, "ip", "-6", "route", "show", "table", "local")
		testkit.Contains(l.t, routes, "local "+vip4.String()+" dev lo", "local "+vip6.String()+" dev lo")
		if l.t.Failed() {
			l.t.Logf("of %s", name)
		}
	}
}

// TestTable: the routes of VIPs are in the table for another speaker while the node serves.
func TestTable(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, inTable())
	n := l.nodes["n3"]
	show := func() (out string) {
		for line := range strings.Lines(l.run(n.Node, "ip", "route", "show", "table", "all", "proto", "86") + l.run(n.Node, "ip", "-6", "route", "show", "table", "all", "proto", "86")) {
			if strings.Contains(line, " table 198 ") {
				out += line
			}
		}
		return out
	}
	testkit.Await(t, "routes", func() bool {
		return strings.Contains(show(), vip4.String()+" dev lo table 198 scope link metric 100") && strings.Contains(show(), vip6.String()+" dev lo table 198 metric 100")
	}, show, l.states)
	testkit.Must(t, n.state.Publish(state.Firewall{}))
	testkit.Await(t, "a worse metric without the redirect", func() bool { return strings.Contains(show(), "metric 300") && !strings.Contains(show(), "metric 100 ") }, show)
	n.stop(t)
	testkit.Equal(t, "", show())
	testkit.Lacks(t, l.run(n.Node, "ip", "route", "show", "table", "local"), vip4.String())
}
