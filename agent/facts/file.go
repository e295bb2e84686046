package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// File is a list of nodes, this node included, in a YAML file that replaces the API: each
// with name, role, addresses and labels, as in spec.peers of cluster.yaml. The last
// readable list counts, without invalid nodes (hard case 37).
type File struct {
	path, self string
	log        *slog.Logger
	changed    chan struct{}
	reading    logging.Transitions // the file
	invalid    logging.Transitions // nodes in it

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
	tick := time.NewTicker(resyncEvery)
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

// read reads the file, and keeps the last list if it is invalid.
func (f *File) read() {
	data, err := os.ReadFile(f.path)
	var nodes []v1alpha1.Peer
	if err == nil {
		err = yaml.UnmarshalStrict(data, &nodes)
	}
	f.reading.Warn(f.log, err, "cannot read the list of nodes: the last one stays in use", "list of nodes read again", "path", f.path)
	if err != nil {
		return
	}
	nodes, err = validPeers(nodes)
	f.invalid.Warn(f.log, err, "invalid nodes in the list of nodes ignored", "all nodes in the list of nodes valid again", "path", f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = nodes
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// validPeers returns the valid peers, only the first of each name.
func validPeers(list []v1alpha1.Peer) (valid []v1alpha1.Peer, err error) {
	seen := map[string]bool{}
	for i, p := range list {
		problem := p.Validate().Err()
		if problem == nil && seen[p.Name] {
			problem = fmt.Errorf("%s is listed twice", p.Name)
		}
		if problem != nil {
			err = errors.Join(err, fmt.Errorf("node %d: %w", i, problem))
			continue
		}
		seen[p.Name] = true
		valid = append(valid, p)
	}
	return valid, err
}

// Current implements Nodes.
func (f *File) Current() nodelist.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s nodelist.Snapshot
	for _, p := range f.nodes {
		if p.Name == f.self {
			s.Registered, s.Self = true, p
		} else {
			s.Peers = append(s.Peers, p)
		}
	}
	return s
}

// SetCluster implements Nodes: it has no effect on the file.
func (f *File) SetCluster(*v1alpha1.ClusterConfig) {}

// Routers implements Nodes: a list of nodes has no routers.
func (f *File) Routers() (r nodelist.Routers, known bool) { return r, false }

// Announce implements Nodes: a list of nodes announces nothing.
func (f *File) Announce(string) {}

// Confirm implements Nodes: the file is read as it changes.
func (f *File) Confirm() {}

// Changed implements Nodes.
func (f *File) Changed() <-chan struct{} { return f.changed }
