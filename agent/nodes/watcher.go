package nodes

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Options say what a Watcher watches, and for whom.
type Options struct {
	// Node is the name of this node, as the API knows it.
	Node string
	// Role is the pool of this node. It decides which API servers are read.
	Role string
	// Cluster says what the VIPs, machine networks, ports and the peers known
	// beforehand are. SetCluster changes it.
	Cluster *v1alpha1.ClusterConfig
	// Kubeconfig is the path of a kubeconfig, such as
	// /var/lib/kubelet/kubeconfig. It may appear and change at any time.
	Kubeconfig string
	// ServerName is the name that the certificates of API servers are verified
	// for. Empty: what the kubeconfig says, api-int.<domain> on OpenShift.
	ServerName string
	// StateFile is the path of the last known state, in a directory that
	// exists. It is this Watcher's alone. Empty: none is kept.
	StateFile string
	// Quiet is for how long nothing may change before a change is handed on,
	// 100 ms if 0. MaxDelay is the longest that a change waits, and the shortest
	// time between two, 3 s if 0.
	Quiet, MaxDelay time.Duration
	// ControlPlane says to watch the Nodes of the control plane alone: this node is
	// Registered only if it is one of them.
	ControlPlane bool
	// RouterPods says to watch the router pods of this node too.
	RouterPods bool
	// Bootstrap says to watch too where the host is that bootstraps the cluster.
	Bootstrap bool
	// Log is where it is said what changed and why.
	Log *slog.Logger
}

// Watcher watches the cluster's nodes.
type Watcher struct {
	node      string
	stateFile string
	partial   bool // Nodes of the control plane alone
	pace      pace
	log       *slog.Logger
	client    *client
	nodes     lists
	routers   *routers        // nil if not watched
	bootstrap *bootstrapWatch // nil if not watched
	feed      feed[Snapshot]
	announcer *announcer

	change chan bool // something changed; true: hand it on at once

	mu      sync.Mutex
	cluster *v1alpha1.ClusterConfig

	saving  logging.Transitions // of the last known state
	reading logging.Transitions // of Nodes that are not valid
	invalid atomic.Int64        // how many those are
}

// New returns a Watcher that has the last known state, if there is one on disk,
// and does nothing until Run.
func New(o Options) (*Watcher, error) {
	switch {
	case o.Node == "" || o.Role == "":
		return nil, errors.New("watching nodes takes this node's name and role")
	case o.Cluster == nil || o.Kubeconfig == "" || o.Log == nil:
		return nil, errors.New("watching nodes takes a cluster, a kubeconfig and a log")
	}
	if o.Quiet == 0 {
		o.Quiet = 100 * time.Millisecond
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = 3 * time.Second
	}
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
			failed: failures{}, watches: map[*openWatch]struct{}{},
		},
	}
	w.announcer = newAnnouncer(w.client, o.Node)
	w.nodes = newLists(o.ControlPlane, w.concerns, w.changed)
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

// Subscribe returns a channel that gets the latest Snapshot, if there is one,
// and then each that differs from the one before, until ctx ends. Whoever is
// slow misses some, never the latest. The channel is not closed.
//
// No Snapshot comes before the API answered or a state was found on disk.
func (w *Watcher) Subscribe(ctx context.Context) <-chan Snapshot { return w.feed.subscribe(ctx) }

// Current returns the latest Snapshot; ok is false before the first.
func (w *Watcher) Current() (s Snapshot, ok bool) { return w.feed.current() }

// SetCluster replaces the cluster's configuration, after it changed on disk.
func (w *Watcher) SetCluster(c *v1alpha1.ClusterConfig) {
	w.mu.Lock()
	w.cluster = c
	w.mu.Unlock()
	w.client.setSpec(&c.Spec)
	w.changed(true)
}

// Run watches until ctx ends. It is called once; nothing is left when it
// returns.
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

// readState gives the state on disk, as far as it is worth something.
func (w *Watcher) readState() state {
	if w.stateFile == "" {
		return state{}
	}
	known, err := readState(w.stateFile, w.cluster.Metadata.Name)
	if err != nil {
		w.log.Warn("ignoring the last known state on disk, as far as it is not valid", "file", w.stateFile, "error", err.Error())
	}
	return known
}

// restore begins with what was known last (hard case 19).
func (w *Watcher) restore(records []*record) {
	if len(records) == 0 {
		return
	}
	w.nodes.restore(records)
	w.publish("the last known state on disk")
}

// giveBackAfter is how long after a change the memory that was taken to read and
// apply it goes back to the system: a list of thousands of nodes takes several
// times what is kept of it, and Go would keep most of that for minutes.
const giveBackAfter = 5 * time.Second

// concerns says that the others see this node itself in another way: what they send
// goes elsewhere, or nowhere, as soon as they know.
func (w *Watcher) concerns(old, now *record) bool {
	if old == nil || now == nil {
		return old != nil && old.Name == w.node
	}
	return now.Name == w.node && !(slices.Equal(old.Addresses, now.Addresses) && slices.Equal(old.Host, now.Host) &&
		slices.Equal(old.Networks, now.Networks) && slices.Equal(old.Labels, now.Labels))
}

// changed wakes deliver up.
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

// deliver publishes changes at the pace, until ctx ends.
func (w *Watcher) deliver(ctx context.Context) {
	var first, last, handed time.Time
	urgent := false
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	used := time.NewTimer(giveBackAfter) // by restore
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
				used.Reset(giveBackAfter)
			}
		case <-used.C:
			debug.FreeOSMemory()
		}
	}
}

// publish hands on what is known now if it differs from what was, and says
// whether it did. Before anything is known there is nothing to hand on: an
// empty list of peers would be a lie.
func (w *Watcher) publish(source string) bool {
	w.mu.Lock()
	cluster := w.cluster
	w.mu.Unlock()
	var bootstrap Bootstrap
	if w.bootstrap != nil {
		bootstrap = w.bootstrap.current()
	}
	all, stale, synced := w.nodes.get()
	records, invalid, err := validRecords(all)
	w.invalid.Store(int64(invalid))
	w.reading.Warn(w.log, err, "ignoring what is not valid in Nodes", "all Nodes are valid again")
	if !synced && len(records) == 0 {
		return false
	}
	s := newSnapshot(records, w.node, &cluster.Spec, stale, bootstrap)
	w.announcer.look(s)
	old, ok := w.feed.current()
	if !ok || !s.equal(&old) {
		w.client.setNodes(s.all())
		w.feed.publish(*s)
		w.say(source, &old, s, !ok)
	} else {
		ok = false
	}
	if synced {
		kept := selected(records, selecting(&cluster.Spec))
		w.save(state{Cluster: cluster.Metadata.Name, Bootstrap: bootstrap, Nodes: kept})
	}
	return ok
}

func (w *Watcher) say(source string, old, s *Snapshot, first bool) {
	joined, left, moved, changed := diff(old.all(), s.all())
	args := []any{"from", source, "nodes", len(s.all()), "registered", s.Registered, "stale", s.Stale}
	for _, x := range []struct {
		what  string
		names []string
	}{{"joined", joined}, {"left", left}, {"moved", moved}, {"changed", changed}} {
		if len(x.names) > 0 && !first {
			args = append(args, x.what, some(x.names))
		}
	}
	w.log.Info("nodes", args...)
}

// save keeps the state for the next start, if it changed.
func (w *Watcher) save(s state) {
	if w.stateFile == "" {
		return
	}
	data, err := s.encode(maxStateBytes)
	if err == nil {
		_, err = atomicfile.Write(w.stateFile, data, 0o600)
	}
	w.saving.Warn(w.log, err, "cannot keep the last known state on disk", "can keep the last known state on disk again", "file", w.stateFile)
}
