package probe

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// A server that ends takes its connections along, which is detected even if no client has sent
// a request since.
func TestHoldBroken(t *testing.T) {
	testkit.Live(t)
	server, client := newNodes(t)
	s := newServer(t, server, ok)
	h, err := Hold(within(t), HoldConfig{Target: Target{URL: "http://192.0.2.1/", Dial: client.DialContext, Timeout: time.Minute}, Connections: 10, Every: time.Hour})
	testkit.Must(t, err)
	t.Cleanup(func() { h.End() })
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
	testkit.Equal(t, want, got)
}
