package probe

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// silence makes a node believe that another host has the address.
func silence(t testing.TB, node *netns.Node, address string) {
	t.Helper()
	testkit.Run(t, node.Command(t.Context(), "ip", "neighbour", "add", address, "lladdr", "02:00:00:00:00:09", "dev", node.Link))
}

func hold(t *testing.T, cfg HoldConfig) *Held {
	t.Helper()
	h, err := Hold(within(t), cfg)
	testkit.Must(t, err)
	t.Cleanup(func() { h.End() })
	return h
}

func TestHold(t *testing.T) {
	testkit.Live(t)
	server, client := newNodes(t)
	var clients sync.Map // by their ports
	newServer(t, server, "192.0.2.1:6443", "master-0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		clients.Store(r.RemoteAddr, true)
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	}))
	target := Target{URL: "https://192.0.2.1:6443/readyz", Dial: client.DialContext, Timeout: time.Minute}

	h := hold(t, HoldConfig{Target: target, Connections: 100, Every: 100 * time.Millisecond})
	testkit.Await(t, "requests over all of them", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.result.Answered >= 200
	})
	r := h.End()
	if r.Connections != 100 || r.Broken() != 0 || len(r.Errors) != 0 || r.Requests < 300 {
		t.Errorf("held connections: %+v", r)
	}
	if again := h.End(); again.Requests != r.Requests {
		t.Errorf("ending again: %+v", again)
	}
	opened := 0
	clients.Range(func(any, any) bool { opened++; return true })
	testkit.Equal(t, 100, opened)

	target.URL = "https://192.0.2.1:6443/abort"
	if _, err := Hold(within(t), HoldConfig{Target: target, Connections: 10}); err == nil {
		t.Error("connections that break are held")
	}
}

// A server that ends takes its connections along, which is detected even if no client has sent
// a request since.
func TestHoldBroken(t *testing.T) {
	testkit.Live(t)
	server, client := newNodes(t)
	s := newServer(t, server, "192.0.2.1:80", "", ok)
	h := hold(t, HoldConfig{Target: Target{URL: "http://192.0.2.1/", Dial: client.DialContext, Timeout: time.Minute}, Connections: 10, Every: time.Hour})
	testkit.Await(t, "the first", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.result.Requests == 1
	})
	s.CloseClientConnections()
	s.Close()
	r := h.End()
	if r.Requests != 11 || r.Answered != 1 || r.Closed+r.Reset != 10 {
		t.Errorf("held connections whose server went away: %+v", r)
	}
}

func TestHoldCounts(t *testing.T) {
	h := &Held{}
	for _, err := range []error{nil, errUnanswered, errors.New("status 500"),
		shorten(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		shorten(&net.OpError{Op: "read", Err: syscall.ECONNRESET}),
		shorten(&net.OpError{Op: "write", Err: syscall.EPIPE}),
		shorten(net.ErrClosed),
	} {
		h.record(err)
	}
	want := HoldResult{Requests: 7, Answered: 1, Unanswered: 1, Refused: 1, Reset: 2, Other: 2}
	got := h.result
	got.Errors = nil
	if got.Requests != want.Requests || got.Answered != want.Answered || got.Unanswered != want.Unanswered ||
		got.Refused != want.Refused || got.Reset != want.Reset || got.Other != want.Other {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
