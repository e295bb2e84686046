package mdns

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type lab struct {
	t       *testing.T
	network *netns.Network
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{t, daemon.NewNetwork(t)}
}

func (l *lab) add(name string, prefixes ...string) *netns.Node {
	l.t.Helper()
	return daemon.AddNode(l.t, l.network, name, prefixes...)
}

// ip runs iproute2 in the node.
func (l *lab) ip(node *netns.Node, args ...string) {
	l.t.Helper()
	testkit.Run(l.t, node.Command(context.Background(), "ip", args...))
}

// runner is a publisher or a resolver on a node: its own goroutine opens all of its sockets.
type runner struct {
	addresses chan []netip.Addr
	end       func() // waits for its end

	mu    sync.Mutex
	state publisherState
	hosts []state.Host
}

func (l *lab) publish(node *netns.Node, host string, addresses []netip.Addr) *runner {
	return l.start(node, addresses, func(ctx context.Context, r *runner) error {
		p := publisher{Host: host, Addresses: r.addresses, Notify: func(s publisherState) { r.set(func() { r.state = s }) }}
		return p.run(ctx)
	})
}

func (l *lab) resolve(node *netns.Node, addresses []netip.Addr) *runner {
	return l.start(node, addresses, func(ctx context.Context, r *runner) error {
		(&resolver{Addresses: r.addresses, Notify: func(hosts []state.Host) { r.set(func() { r.hosts = hosts }) }}).run(ctx)
		return nil
	})
}

func (l *lab) start(node *netns.Node, addresses []netip.Addr, run func(context.Context, *runner) error) *runner {
	r := &runner{addresses: make(chan []netip.Addr, 1)}
	r.addresses <- addresses
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- node.Do(func() error { return run(ctx, r) }) }()
	r.end = sync.OnceFunc(func() { stop(); testkit.Check(l.t, <-ended) })
	l.t.Cleanup(r.end)
	return r
}

func (r *runner) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *runner) published() bool { return r.now().Published }

func (r *runner) now() publisherState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// hasHost reports whether the host is known with exactly these addresses.
func (r *runner) hasHost(host string, addresses ...netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		if h.Name == host {
			return slices.Equal(h.Addresses, addresses)
		}
	}
	return len(addresses) == 0
}
