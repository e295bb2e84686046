package facts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Watched are the Nodes that an API server lists. The watch begins when there is
// a cluster.yaml that says where to find one.
type Watched struct {
	source                *Source
	kubeconfig, stateFile string
	log                   *slog.Logger
	changed               chan struct{}

	mu      sync.Mutex
	watcher *nodes.Watcher
}

// NewWatched prepares a watch for the node of s. stateFile keeps what was known
// last (hard case 19).
func NewWatched(s *Source, kubeconfig, stateFile string, log *slog.Logger) *Watched {
	return &Watched{source: s, kubeconfig: kubeconfig, stateFile: stateFile, log: log, changed: make(chan struct{}, 1)}
}

// Run watches until ctx ends.
func (w *Watched) Run(ctx context.Context) {
	cluster := w.await(ctx)
	if cluster == nil {
		return
	}
	watcher, err := nodes.New(nodes.Options{
		Node: w.source.Name, Role: w.source.Role, Cluster: cluster,
		Kubeconfig: w.kubeconfig, StateFile: w.stateFile, Log: w.log,
	})
	if err != nil {
		w.log.Error("the nodes cannot be watched", "error", err)
		return
	}
	w.mu.Lock()
	w.watcher = watcher
	w.mu.Unlock()
	var all sync.WaitGroup
	defer all.Wait()
	snapshots := watcher.Subscribe(ctx)
	all.Go(func() { watcher.Run(ctx) })
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if now := w.source.lastCluster(); now != cluster {
				cluster = now
				watcher.SetCluster(now)
			}
			continue
		case <-snapshots:
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// await waits for a cluster.yaml that is right; the job loads it.
func (w *Watched) await(ctx context.Context) *v1alpha1.ClusterConfig {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if c := w.source.lastCluster(); c != nil {
			return c
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// Current implements Nodes.
func (w *Watched) Current() (peers []v1alpha1.Peer, registered bool, labels map[string]string) {
	w.mu.Lock()
	watcher := w.watcher
	w.mu.Unlock()
	if watcher == nil {
		return nil, false, nil
	}
	s, _ := watcher.Current()
	return s.Peers, s.Registered, s.Self.Labels
}

// Changed implements Nodes.
func (w *Watched) Changed() <-chan struct{} { return w.changed }
