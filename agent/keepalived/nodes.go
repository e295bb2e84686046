package keepalived

import (
	"context"
	"sync"

	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Nodes is what the job wants to know from the cluster. None of it blocks.
type Nodes interface {
	// Current gives all other nodes that are known, whether this node is in the
	// cluster's list of nodes, and its labels, nil while nobody knows them.
	Current() (peers []v1alpha1.Peer, registered bool, labels map[string]string)
	// Router says whether a ready router of the ingress controller runs on this
	// node; known is false while no API server can be asked.
	Router(controller string) (here, known bool)
	// SetCluster tells what the VIPs and networks of the cluster are from now on.
	SetCluster(*v1alpha1.ClusterConfig)
	// Changed has a word in it after any of that changed. It has one reader.
	Changed() <-chan struct{}
}

// Watched are the Nodes of a nodes.Watcher.
type Watched struct {
	watcher *nodes.Watcher
	changed chan struct{}

	mu      sync.Mutex
	routers *nodes.Routers
}

// NewWatched prepares a watch; o.RouterPods says whether routers are known.
func NewWatched(o nodes.Options) (*Watched, error) {
	w, err := nodes.New(o)
	if err != nil {
		return nil, err
	}
	return &Watched{watcher: w, changed: make(chan struct{}, 1)}, nil
}

// Run watches until ctx ends.
func (w *Watched) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	snapshots, routers := w.watcher.Subscribe(ctx), w.watcher.Routers(ctx)
	all.Go(func() { w.watcher.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-snapshots:
		case r := <-routers:
			w.mu.Lock()
			w.routers = &r
			w.mu.Unlock()
		}
		say(w.changed)
	}
}

// Current is part of Nodes.
func (w *Watched) Current() ([]v1alpha1.Peer, bool, map[string]string) {
	s, known := w.watcher.Current()
	if !known || !s.Registered {
		return s.Peers, false, nil
	}
	return s.Peers, true, s.Self.Labels
}

// Router is part of Nodes.
func (w *Watched) Router(controller string) (here, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.routers == nil || w.routers.Stale {
		return false, false
	}
	return w.routers.Has(controller), true
}

// SetCluster is part of Nodes.
func (w *Watched) SetCluster(c *v1alpha1.ClusterConfig) { w.watcher.SetCluster(c) }

// Changed is part of Nodes.
func (w *Watched) Changed() <-chan struct{} { return w.changed }

// say leaves a word in a channel that has room for one.
func say(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // there is one
	}
}
