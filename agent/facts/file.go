package facts

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// File is a list of nodes in a YAML file, this node among them, in place of the
// API's: each with name, role, addresses and labels, as spec.peers of
// cluster.yaml. The last list that could be read counts.
type File struct {
	path, self string
	log        *slog.Logger
	changed    chan struct{}

	mu    sync.Mutex
	nodes []v1alpha1.Peer
}

// NewFile reads the file, which may not exist yet. self is this node's name.
func NewFile(path, self string, log *slog.Logger) *File {
	f := &File{path: path, self: self, log: log, changed: make(chan struct{}, 1)}
	f.read()
	return f
}

// Run follows the file until ctx ends.
func (f *File) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the list of nodes: %w", err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("watching the list of nodes: %w", err)
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		f.read()
		select {
		case <-ctx.Done():
			return nil
		case <-w.Events:
		case <-w.Errors:
		case <-tick.C:
		}
	}
}

// read takes the file in if it is right.
func (f *File) read() {
	data, err := os.ReadFile(f.path)
	var nodes []v1alpha1.Peer
	if err == nil {
		err = yaml.UnmarshalStrict(data, &nodes)
	}
	if err != nil {
		f.log.Warn("the list of nodes cannot be read", "path", f.path, "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = nodes
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Current implements Nodes.
func (f *File) Current() (peers []v1alpha1.Peer, registered bool, labels map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	peers = slices.Clone(f.nodes)
	if i := slices.IndexFunc(peers, func(p v1alpha1.Peer) bool { return p.Name == f.self }); i >= 0 {
		return slices.Delete(peers, i, i+1), true, f.nodes[i].Labels
	}
	return peers, false, nil
}

// Changed implements Nodes.
func (f *File) Changed() <-chan struct{} { return f.changed }
