package watch

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/socket"

	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// Config configures a watch.
type Config struct {
	Network *netns.Network // to capture packets on; nil for none
	Nodes   []*netns.Node  // to watch the addresses of; the capture has all nodes
	VIPs    []netip.Addr
	Since   time.Time // origin of all times; the start of the watch if zero
}

// Watch records the holders of VIPs. Its methods are safe for concurrent use.
type Watch struct {
	since time.Time
	vips  map[netip.Addr]bool
	ports map[int]string // nodes by their ports on the bridge

	bridge *socket.Conn
	cancel context.CancelFunc
	stop   chan struct{}
	done   sync.WaitGroup

	mu        sync.Mutex
	present   map[on]bool
	off       map[string]bool
	addresses *holdings
	capture   *holdings
	speakers  map[speaker]*Speaker
	ended     bool
	errs      []error
}

// Start starts a watch. The caller must End it.
func Start(cfg Config) (*Watch, error) {
	w := &Watch{
		since:     cfg.Since,
		vips:      map[netip.Addr]bool{},
		stop:      make(chan struct{}),
		present:   map[on]bool{},
		off:       map[string]bool{},
		addresses: newHoldings(Addresses),
		capture:   newHoldings(Capture),
		speakers:  map[speaker]*Speaker{},
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	for _, vip := range cfg.VIPs {
		w.vips[vip.Unmap()] = true
	}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	var err error
	if cfg.Network != nil {
		err = w.listen(ctx, cfg.Network)
	}
	for _, node := range cfg.Nodes {
		if err == nil {
			err = w.watchAddresses(node)
		}
	}
	if err != nil {
		_, ending := w.End()
		return nil, errors.Join(err, ending)
	}
	return w, nil
}

// now returns the time since Config.Since.
func (w *Watch) now() time.Duration { return time.Since(w.since) }

// fail records an error of the watch.
func (w *Watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.errs = append(w.errs, err)
	}
}

// Timeline returns the holders up to now.
func (w *Watch) Timeline() Timeline {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Timeline(slices.Concat(w.addresses.ended, w.capture.ended))
	now := w.now()
	for k, s := range w.addresses.open {
		t = append(t, w.addresses.span(k, s.from, now))
	}
	for k, s := range w.capture.open {
		t = append(t, w.capture.span(k, s.from, s.to))
	}
	t.sort()
	return t
}

// End stops the watch and returns the holders. After an error the timeline may be incomplete.
func (w *Watch) End() (Timeline, error) {
	t := w.Timeline()
	w.mu.Lock()
	first := !w.ended
	w.ended = true
	w.mu.Unlock()
	if first {
		w.cancel()
		close(w.stop)
		w.done.Wait()
		w.closeBridge()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return t, errors.Join(w.errs...)
}
