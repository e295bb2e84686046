package tickle

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// newTickler gives one whose peer is at an address of loopback, and one of its VIPs.
func newTickler(port int, peers ...string) *Tickler {
	t := New(port, slog.New(slog.DiscardHandler))
	v := VIP{Address: api4.Address, Source: addr("127.0.0.1")}
	for _, p := range peers {
		v.Peers = append(v.Peers, addr(p))
	}
	t.Follow([]VIP{v})
	return t
}

// freePort is one of all addresses.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", ":0")
	testkit.Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func running(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// A holder tells a peer, although another takes connections and says nothing, and a third
// does not listen. The peer forgets it when the holder is no peer any more.
func TestShare(t *testing.T) {
	port := freePort(t)
	receiver := newTickler(port, "127.0.0.1")
	at := func(address string, handler http.Handler) {
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr(address), uint16(port)).String())
		testkit.Must(t, err)
		t.Cleanup(func() { l.Close() })
		if handler != nil {
			server := &http.Server{Handler: handler}
			t.Cleanup(func() { server.Close() })
			go server.Serve(peersOnly{l, receiver})
		}
	}
	at("127.0.0.2", nil)
	at("127.0.0.3", http.HandlerFunc(receiver.take))

	holder := newTickler(port, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	running(t, holder.share)
	holder.See([]netip.Addr{api4.Address}, nil)
	testkit.Await(t, "the peer to be told", func() bool {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		_, told := receiver.known[addr("127.0.0.1")].clients[api4.Address]
		return told
	})
	receiver.Follow(nil)
	if n := len(receiver.known); n != 0 {
		t.Errorf("%d holders that are no peers are known", n)
	}
}

// Only peers are heard; what they say is checked, and nothing that they send takes the
// port from others.
func TestServe(t *testing.T) {
	port := freePort(t)
	tickler := newTickler(port, "127.0.0.2")
	running(t, tickler.serve)
	put := func(from, method, path, body string) (int, string) {
		t.Helper()
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: addr(from).AsSlice()}}
		c := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		r, err := http.NewRequest(method, "http://"+netip.AddrPortFrom(addr("127.0.0.9"), uint16(port)).String()+path, strings.NewReader(body))
		testkit.Must(t, err)
		answer, err := c.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	const good = `{"192.0.2.5":{"6443":["198.51.100.9:1","198.51.100.9:2"]}}`
	testkit.Await(t, "an answer", func() bool { code, _ := put("127.0.0.2", "PUT", path, `{}`); return code == 204 })
	// One that says nothing and does not go.
	idle, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: addr("127.0.0.2").AsSlice()}}).Dial("tcp", netip.AddrPortFrom(addr("127.0.0.9"), uint16(port)).String())
	testkit.Must(t, err)
	defer idle.Close()
	for name, tt := range map[string]struct {
		from, method, path, body string
		want                     int
	}{
		"a stranger":     {"127.0.0.3", "PUT", path, good, 0},
		"another method": {"127.0.0.2", "GET", path, "", 404},
		"another path":   {"127.0.0.2", "PUT", "/", good, 404},
		"no list":        {"127.0.0.2", "PUT", path, "x", 400},
		"too long":       {"127.0.0.2", "PUT", path, strings.Repeat(" ", maxBody+1), 400},
	} {
		if code, text := put(tt.from, tt.method, tt.path, tt.body); code != tt.want {
			t.Errorf("%s: %d %s, want %d", name, code, text, tt.want)
		}
		if n := tickler.Known(api4.Address); n != 0 {
			t.Errorf("%s: %d clients", name, n)
		}
	}
	if code, text := put("127.0.0.2", "PUT", path, good); code != 204 {
		t.Errorf("%d %s", code, text)
	}
	if n := tickler.Known(api4.Address); n != 2 {
		t.Errorf("%d clients, want 2", n)
	}
	most := Clients{api4.Address: {6443: nil}}
	for i := range MaxClients {
		most[api4.Address][6443] = append(most[api4.Address][6443], netip.AddrPortFrom(addr("198.51.100.255"), uint16(i+10000)))
	}
	if code, text := put("127.0.0.2", "PUT", path, string(most.byFamily()[true])); code != 204 || tickler.Known(api4.Address) != MaxClients {
		t.Errorf("as many as there may be: %d %s", code, text)
	}
}

// What one holder told is not replaced by what another tells, and counts for some time.
func TestOf(t *testing.T) {
	tickler := newTickler(0, "127.0.0.2", "127.0.0.3")
	tickler.known[addr("127.0.0.2")] = told{Clients{api4.Address: {6443: clients("198.51.100.9:1")}}, time.Now().Add(-forget / 2)}
	tickler.known[addr("127.0.0.3")] = told{Clients{api4.Address: {}}, time.Now()}
	if n := tickler.Known(api4.Address); n != 1 {
		t.Errorf("%d clients, want 1", n)
	}
	tickler.known[addr("127.0.0.2")] = told{tickler.known[addr("127.0.0.2")].clients, time.Now().Add(-forget)}
	if n := tickler.Known(api4.Address); n != 0 {
		t.Errorf("%d clients after a long time", n)
	}
}
