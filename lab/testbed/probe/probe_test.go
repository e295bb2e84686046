package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
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

// certificate is self-signed, with that common name.
func certificate(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	testkit.Must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// newServer serves at an address of a node, with TLS if it has a name for its certificate.
func newServer(t testing.TB, node *netns.Node, address, name string, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener.Close()
	err := node.Do(func() (err error) {
		s.Listener, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(t, err)
	if name == "" {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, name)}}
		s.StartTLS()
	}
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

func start(t testing.TB, cfg Config) *Probe {
	t.Helper()
	p, err := Start(cfg)
	testkit.Must(t, err)
	t.Cleanup(func() { p.End() })
	return p
}

func TestAnsweringServer(t *testing.T) {
	testkit.Live(t)
	server, client := newNodes(t)
	newServer(t, server, "192.0.2.1:6443", "master-0", ok)
	newServer(t, server, "192.0.2.1:80", "", ok)
	tests := []struct {
		target Target
		want   string
	}{
		{Target{URL: "https://192.0.2.1:6443/readyz"}, "master-0"},
		{Target{URL: "http://192.0.2.1/"}, "ok from 192.0.2.1"},
		{Target{URL: "http://192.0.2.1/", Host: "console.apps.demo.example.com"}, "ok from console.apps.demo.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			tt.target.Dial, tt.target.Timeout = client.DialContext, time.Minute
			p := start(t, Config{Target: tt.target})
			testkit.Must(t, p.Await(within(t), 5))
			r := p.End()
			if r.Lost() != 0 || r.Outage() != 0 || len(r.Requests) < 5 || r.Slowest() <= 0 || r.Gap() <= 0 || r.Pause() <= 0 {
				t.Errorf("lost %d of %d, outage %v, slowest %v, gap %v, pause %v: %v", r.Lost(), len(r.Requests), r.Outage(), r.Slowest(), r.Gap(), r.Pause(), r.Errors())
			}
			for _, q := range r.Requests {
				if q.From != tt.want || q.Ended < q.Sent {
					t.Fatalf("request %+v, want one from %q", q, tt.want)
				}
			}
		})
	}
}

func TestBadTargets(t *testing.T) {
	tests := []struct{ url, want string }{
		{"https://api.demo.example.com:6443/", "must be an IP address"},
		{"192.0.2.1:6443", "first path segment"},
		{"ftp://192.0.2.1/", "neither https:// nor http://"},
		{"", "neither https:// nor http://"},
		{"https://[192.0.2.1/", "missing ']'"},
	}
	for _, tt := range tests {
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
	s := newServer(t, server, "192.0.2.1:80", "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	p := start(t, Config{Target: Target{URL: "http://192.0.2.1/", Dial: client.DialContext, Timeout: time.Minute}})
	await := func() {
		t.Helper()
		testkit.Must(t, p.Await(within(t), 5))
	}
	await()
	status.Store(http.StatusInternalServerError)
	testkit.Await(t, "status 500", func() bool { return strings.Contains(p.lastLoss(), "status 500") })
	s.Listener.Close()
	testkit.Await(t, "a refusal", func() bool { return strings.Contains(p.lastLoss(), "dial: connection refused") })
	newServer(t, server, "192.0.2.1:80", "", ok)
	await()
	r := p.End()
	if r.Outage() <= 0 || r.Lost() < 2 || r.Gap() <= 0 {
		t.Errorf("outage %v, %d lost, gap %v", r.Outage(), r.Lost(), r.Gap())
	}
	if e := r.Errors(); e["status 500"] == 0 || e["dial: connection refused"] == 0 {
		t.Errorf("errors %v", e)
	}
}

// A VIP on no node: a bounded number of requests hang, and no more are sent.
func TestBounded(t *testing.T) {
	testkit.Live(t)
	_, client := newNodes(t)
	silence(t, client, "192.0.2.9")
	p := start(t, Config{Target: Target{URL: "https://192.0.2.9:6443/", Dial: client.DialContext, Timeout: 3 * time.Second}})
	p.mu.Lock()
	p.bound = 20
	p.mu.Unlock()
	testkit.Await(t, "a request too many", func() bool { return strings.Contains(p.lastLoss(), errCrowded.Error()) })
	r := p.End()
	if e := r.Errors(); r.Lost() != len(r.Requests) || e[errUnanswered.Error()] < 20 || len(e) != 2 {
		t.Errorf("%d requests: %v", len(r.Requests), e)
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
	tests := []struct {
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
	}
	for _, tt := range tests {
		r := result(tt.requests)
		testkit.Equal(testkit.In(t, tt.requests), tt.outage, r.Outage())
		testkit.Equal(testkit.In(t, tt.requests), tt.slowest, r.Slowest())
		testkit.Equal(testkit.In(t, tt.requests), tt.gap, r.Gap())
		testkit.Equal(testkit.In(t, tt.requests), tt.lost, r.Lost())
		if got := r.Spells(); len(got) != tt.spells {
			t.Errorf("%q: spells %v, want %d", tt.requests, got, tt.spells)
		}
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
