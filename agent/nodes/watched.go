package nodes

import (
	"context"
	"sync"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Watched implements facts.Nodes by an API server. The watch begins with SetCluster, from the
// last known state (hard case 19).
type Watched struct {
	options nodelist.Options
	begun   chan struct{} // closed when there is a watcher
	changed chan struct{}

	mu      sync.Mutex
	watcher *Watcher // nil before begun
	routers nodelist.Routers
}

// NewWatched returns a Watched; SetCluster sets o.Cluster.
func NewWatched(o nodelist.Options) *Watched {
	return &Watched{
		options: o, begun: make(chan struct{}), changed: make(chan struct{}, 1),
		routers: nodelist.Routers{Stale: true},
	}
}

// Run watches until ctx ends.
func (w *Watched) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.begun:
	}
	var all sync.WaitGroup
	defer all.Wait()
	snapshots, routers := w.watcher.Subscribe(ctx), w.watcher.Routers(ctx)
	all.Go(func() { w.watcher.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-snapshots:
		case r := <-routers:
			w.mu.Lock()
			w.routers = r
			w.mu.Unlock()
		}
		select {
		case w.changed <- struct{}{}:
		default: // a change is pending
		}
	}
}

// SetCluster implements facts.Nodes.
func (w *Watched) SetCluster(c *v1alpha1.ClusterConfig) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watcher != nil {
		w.watcher.SetCluster(c)
		return
	}
	w.options.Cluster = c
	watcher, err := New(w.options)
	if err != nil {
		w.options.Log.Error("cannot watch nodes", "error", err)
		return
	}
	w.watcher = watcher
	close(w.begun)
}

// Current implements facts.Nodes.
func (w *Watched) Current() (s nodelist.Snapshot) {
	if watcher := w.running(); watcher != nil {
		s, _ = watcher.Current()
	}
	return s
}

// Routers implements facts.Nodes.
func (w *Watched) Routers() (r nodelist.Routers, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.routers, !w.routers.Stale
}

// Announce implements facts.Nodes.
func (w *Watched) Announce(text string) {
	if watcher := w.running(); watcher != nil {
		watcher.Announce(text)
	}
}

// Confirm implements facts.Nodes.
func (w *Watched) Confirm() {
	if watcher := w.running(); watcher != nil {
		watcher.Confirm()
	}
}

// running returns the watcher; nil before it runs.
func (w *Watched) running() *Watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watcher
}

// Changed implements facts.Nodes.
func (w *Watched) Changed() <-chan struct{} { return w.changed }
