package probe

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer serves at port 80 of the node.
func newServer(t testing.TB, node *netns.Node, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener.Close()
	err := node.Do(func() (err error) {
		s.Listener, err = net.Listen("tcp", "192.0.2.1:80")
		return err
	})
	testkit.Must(t, err)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func newNodes(t testing.TB) (server, client *netns.Node) {
	t.Helper()
	n := daemon.NewNetwork(t)
	server = daemon.AddNode(t, n, "server", "192.0.2.1/24")
	return server, daemon.AddNode(t, n, "client", "192.0.2.2/24")
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok from "+r.Host+"\n") })

func TestBadTargets(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"https://api.demo.example.com:6443/", "must be an IP address"},
		{"192.0.2.1:6443", "first path segment"},
		{"ftp://192.0.2.1/", "neither https:// nor http://"},
		{"", "neither https:// nor http://"},
		{"https://[192.0.2.1/", "missing ']'"},
	} {
		if p, err := Start(Config{Target: Target{URL: tt.url}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.url, err, tt.want)
			if err == nil {
				p.End()
			}
		}
	}
}

// Lost requests with their errors, and the end of an outage.
func TestOutage(t *testing.T) {
	testkit.Live(t)
	server, client := newNodes(t)
	var status atomic.Int32
	status.Store(http.StatusOK)
	s := newServer(t, server, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	p, err := Start(Config{Target: Target{URL: "http://192.0.2.1/", Dial: client.DialContext, Timeout: time.Minute}})
	testkit.Must(t, err)
	t.Cleanup(func() { p.End() })
	await := func() {
		t.Helper()
		testkit.Must(t, p.Await(within(t), 5))
	}
	await()
	status.Store(http.StatusInternalServerError)
	testkit.Await(t, "status 500", func() bool { return strings.Contains(p.lastLoss(), "status 500") })
	s.Listener.Close()
	testkit.Await(t, "a refusal", func() bool { return strings.Contains(p.lastLoss(), "dial: connection refused") })
	newServer(t, server, ok)
	await()
	r := p.End()
	if r.Outage() <= 0 || r.Lost() < 2 || r.Gap() <= 0 {
		t.Errorf("outage %v, %d lost, gap %v", r.Outage(), r.Lost(), r.Gap())
	}
	if e := r.Errors(); e["status 500"] == 0 || e["dial: connection refused"] == 0 {
		t.Errorf("errors %v", e)
	}
}

func TestResult(t *testing.T) {
	ms := time.Millisecond
	// Each letter is a request, sent every 10 ms from 1 s on: answered after 2 ms, or after 30
	// ms, or lost.
	result := func(letters string) Result {
		var r Result
		for i, letter := range letters {
			sent := time.Second + time.Duration(i)*10*ms
			q := Request{Sent: sent, Ended: sent + 2*ms}
			switch letter {
			case 's':
				q.Ended = sent + 30*ms
			case 'x':
				q.Ended, q.Err = sent+time.Second, "no answer within 1s"
			}
			r.Requests = append(r.Requests, q)
		}
		return r
	}
	for _, tt := range []struct {
		requests             string
		outage, slowest, gap time.Duration
		lost, spells         int
	}{
		{"", 0, 0, 0, 0, 0},
		{".....", 0, 2 * ms, 10 * ms, 0, 1},
		{"..x..", 20 * ms, 2 * ms, 20 * ms, 1, 3},
		{"..x..xxx.x.", 40 * ms, 2 * ms, 40 * ms, 5, 7},
		{"..s..", 0, 30 * ms, 20 * ms, 0, 1},
		{"..s", 0, 30 * ms, 38 * ms, 0, 1},
		{"xx..", 20 * ms, 2 * ms, 10 * ms, 2, 2},
		{"..xxx", 30 * ms, 2 * ms, 10 * ms, 3, 2},
		{"xxx", 20 * ms, 0, 0, 3, 1},
	} {
		r := result(tt.requests)
		testkit.Equal(testkit.In(t, tt.requests), tt.outage, r.Outage())
		testkit.Equal(testkit.In(t, tt.requests), tt.slowest, r.Slowest())
		testkit.Equal(testkit.In(t, tt.requests), tt.gap, r.Gap())
		testkit.Equal(testkit.In(t, tt.requests), tt.lost, r.Lost())
		testkit.Equal(testkit.In(t, tt.requests), tt.spells, len(r.Spells()))
	}
}

func TestRow(t *testing.T) {
	p := &Probe{}
	for i, letter := range "x..-...--" { // lost, answered, in flight
		r := Request{Sent: time.Duration(i)}
		if letter != '-' {
			r.Ended = r.Sent + 1
		}
		if letter == 'x' {
			r.Err = "lost"
		}
		p.requests = append(p.requests, r)
	}
	for _, tt := range []struct {
		since time.Duration
		n     int
		want  bool
	}{{0, 1, true}, {0, 2, true}, {0, 3, false}, {1, 2, true}, {2, 2, false}, {0, 100, false}} {
		testkit.Equal(testkit.In(t, tt.n, tt.since), tt.want, p.row(tt.since, tt.n))
	}
}
