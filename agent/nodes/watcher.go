package nodes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
)

// Watcher watches the cluster's nodes.
type Watcher struct {
	node      string
	stateFile string
	partial   bool // only Nodes of the control plane
	pace      pace
	log       *slog.Logger
	client    *client
	nodes     nodeLists
	routers   *routers        // nil if not watched
	bootstrap *bootstrapWatch // nil if not watched
	feed      feed[nodelist.Snapshot]
	announcer *announcer

	change chan bool // a change; true: deliver it at once

	mu      sync.Mutex
	cluster *v1alpha1.ClusterConfig

	saving  logging.Transitions // storing the last known state
	reading logging.Transitions // invalid Nodes
	invalid atomic.Int64        // number of invalid Nodes
}

// New returns a Watcher with the last known state on disk, if any. It does nothing until
// Run.
func New(o nodelist.Options) (*Watcher, error) {
	switch {
	case o.Node == "" || o.Role == "":
		return nil, errors.New("watching nodes takes this node's name and role")
	case o.Cluster == nil || o.Kubeconfig == "" || o.Log == nil:
		return nil, errors.New("watching nodes takes a cluster, a kubeconfig and a log")
	}
	o.Quiet = cmp.Or(o.Quiet, 100*time.Millisecond)
	o.MaxDelay = cmp.Or(o.MaxDelay, 3*time.Second)
	w := &Watcher{
		node:      o.Node,
		stateFile: o.StateFile,
		partial:   o.ControlPlane,
		pace:      pace{quiet: o.Quiet, max: max(o.MaxDelay, o.Quiet)},
		log:       o.Log,
		cluster:   o.Cluster,
		change:    make(chan bool, 1),
		client: &client{
			self: o.Node, role: o.Role, kubeconfig: o.Kubeconfig, serverName: o.ServerName,
			log: o.Log, reload: reloadEvery, probe: probeEvery, refused: refusedEvery,
			spec:   &o.Cluster.Spec,
			failed: failures{}, watches: map[*openWatch]struct{}{}, doubts: map[*doubt]struct{}{}, doubted: make(chan struct{}, 1),
		},
	}
	w.announcer = newAnnouncer(w.client, o.Node)
	w.nodes = newLists(o.ControlPlane, w.affectsSelf, w.changed)
	if o.RouterPods {
		w.routers = newRouters(w.client, o.Node, o.Log)
	}
	known := w.readState()
	if o.Bootstrap {
		w.bootstrap = newBootstrapWatch(w.client, known.Bootstrap, func() { w.changed(false) }, o.Log)
	}
	w.restore(known.Nodes)
	return w, nil
}

// Subscribe returns a channel with the latest Snapshot, if any, and then each that
// differs from the one before, until ctx ends. A slow subscriber misses some, never the
// latest. The channel is not closed.
//
// No Snapshot is sent before the API answered or a state was found on disk.
func (w *Watcher) Subscribe(ctx context.Context) <-chan nodelist.Snapshot {
	return w.feed.subscribe(ctx)
}

// Current returns the latest Snapshot; ok is false before the first.
func (w *Watcher) Current() (s nodelist.Snapshot, ok bool) { return w.feed.current() }

// Confirm asks the API servers anew whether the list of nodes is current, which counts for claimedTime
// until one answers. It returns at once; repeated calls make a new connection every five seconds.
func (w *Watcher) Confirm() {
	w.client.claim()
	select {
	case w.client.doubted <- struct{}{}:
	default:
	}
}

// SetCluster replaces the cluster's configuration, after it changed on disk.
func (w *Watcher) SetCluster(c *v1alpha1.ClusterConfig) {
	w.mu.Lock()
	w.cluster = c
	w.mu.Unlock()
	w.client.setSpec(&c.Spec)
	w.changed(true)
}

// Run watches until ctx ends, and must be called once. When it returns, everything has
// stopped.
func (w *Watcher) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { w.client.run(ctx) })
	all.Go(func() { w.nodes.run(ctx, w) })
	if w.routers != nil {
		all.Go(func() { w.routers.run(ctx) })
	}
	if w.bootstrap != nil {
		all.Go(func() { w.bootstrap.run(ctx) })
	}
	all.Go(func() { w.announcer.run(ctx) })
	w.deliver(ctx)
	all.Wait()
}

// readState returns the valid parts of the state on disk.
func (w *Watcher) readState() state {
	if w.stateFile == "" {
		return state{}
	}
	known, err := readState(w.stateFile, w.cluster.Metadata.Name)
	if err != nil {
		w.log.Warn("invalid parts of the last known state on disk ignored", "file", w.stateFile, "error", err.Error())
	}
	return known
}

// restore starts with the last known state (hard case 19).
func (w *Watcher) restore(records []*record) {
	if len(records) == 0 {
		return
	}
	w.nodes.restore(records)
	w.publish("the last known state on disk")
}

// freeMemoryAfter is how long after a change unused memory is returned to the system:
// reading a list of thousands of nodes takes several times what is kept, and Go would
// keep most of it for minutes.
const freeMemoryAfter = 5 * time.Second

// affectsSelf reports whether the others see this node differently: they send adverts
// elsewhere, or nowhere, as soon as they know.
func (w *Watcher) affectsSelf(old, now *record) bool {
	if old == nil || now == nil {
		return old != nil && old.Name == w.node
	}
	return now.Name == w.node && !(slices.Equal(old.Addresses, now.Addresses) && slices.Equal(old.Host, now.Host) &&
		slices.Equal(old.Networks, now.Networks) && slices.Equal(old.Labels, now.Labels))
}

// changed wakes deliver.
func (w *Watcher) changed(now bool) {
	for {
		select {
		case w.change <- now:
			return
		case earlier := <-w.change:
			now = now || earlier
		}
	}
}

// deliver publishes changes, paced, until ctx ends.
func (w *Watcher) deliver(ctx context.Context) {
	var first, last, handed time.Time
	urgent := false
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	used := time.NewTimer(freeMemoryAfter) // for restore
	defer used.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-w.change:
			last = time.Now()
			if first.IsZero() {
				first = last
			}
			wait := time.Until(w.pace.due(first, last, handed))
			if urgent = urgent || now; urgent {
				wait = 0
			}
			timer.Reset(wait)
		case <-timer.C:
			first, urgent = time.Time{}, false
			if w.publish("the API") {
				handed = time.Now()
				used.Reset(freeMemoryAfter)
			}
		case <-used.C:
			debug.FreeOSMemory()
		}
	}
}

// publish publishes the current state if it differs, and reports whether it did. Before
// any data there is nothing to publish: an empty list of peers would be wrong.
func (w *Watcher) publish(source string) bool {
	w.mu.Lock()
	cluster := w.cluster
	w.mu.Unlock()
	var bootstrap nodelist.Bootstrap
	if w.bootstrap != nil {
		bootstrap = w.bootstrap.current()
	}
	all, stale, synced := w.nodes.get()
	records, invalid, err := validRecords(all)
	w.invalid.Store(int64(invalid))
	w.reading.Warn(w.log, err, "invalid data in Nodes ignored", "all Nodes valid again")
	if !synced && len(records) == 0 {
		return false
	}
	s := newSnapshot(records, w.node, &cluster.Spec, stale, bootstrap)
	w.announcer.observe(s)
	old, ok := w.feed.current()
	if !ok || !s.Equal(&old) {
		w.client.setNodes(s.All())
		w.feed.publish(*s)
		w.logChanges(source, &old, s, !ok)
	} else {
		ok = false
	}
	if synced {
		kept := withLabels(records, isSelector(&cluster.Spec))
		w.save(state{Cluster: cluster.Metadata.Name, Bootstrap: bootstrap, Nodes: kept})
	}
	return ok
}

func (w *Watcher) logChanges(source string, old, s *nodelist.Snapshot, first bool) {
	joined, left, moved, changed := diff(old.All(), s.All())
	args := []any{"from", source, "nodes", len(s.All()), "registered", s.Registered, "stale", s.Stale}
	for _, x := range []struct {
		what  string
		names []string
	}{{"joined", joined}, {"left", left}, {"moved", moved}, {"changed", changed}} {
		if len(x.names) > 0 && !first {
			args = append(args, x.what, summarize(x.names))
		}
	}
	w.log.Info("nodes changed", args...)
}

// save stores the state for the next start, if it changed.
func (w *Watcher) save(s state) {
	if w.stateFile == "" {
		return
	}
	data, err := s.encode(maxStateBytes)
	if err == nil {
		_, err = fileio.Write(w.stateFile, data, 0o600)
	}
	w.saving.Warn(w.log, err, "cannot store the last known state on disk", "last known state stored on disk again", "file", w.stateFile)
}
