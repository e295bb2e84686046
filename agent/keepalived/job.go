package keepalived

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/apply"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/track"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
)

// What the job keeps over restarts and reboots, in the one directory on the disk
// that its pod may write to.
const (
	keepDir      = "/etc/keepalived"
	keptSettings = keepDir + "/.vipgen-vrrp.json"
	keptEnd      = keepDir + "/.vipgen-bootstrap-gone"
	// KeptCluster is the last good cluster.yaml, KeptNodes the last known nodes.
	KeptCluster = keepDir + "/.vipgen-cluster.yaml"
	KeptNodes   = keepDir + "/.vipgen-nodes.json"
)

// Job runs keepalived on a node.
type Job struct {
	// Node is the name of the node, Role its pool.
	Node, Role string
	// Root is where the host's file system is.
	Root string
	// Source has the facts of the cluster.
	Source *Source
	Nodes  Nodes
	// State is where the job says what it does, and reads what others do.
	State *state.Dir
	// Program is keepalived, looked up in PATH.
	Program string
	Log     *slog.Logger

	files   *track.Files
	board   *health.Board
	checks  *checks
	daemon  *child
	applier *apply.Applier
	loop    *apply.Loop
	tenure  *tenure // of the bootstrap; nil elsewhere

	// Of the loop's goroutine alone.
	cluster *v1alpha1.ClusterConfig // that the Nodes were told of
	said    map[string]string       // what was complained about, and how
	arrival arrival

	mu   sync.Mutex
	now  *decision // nil before the first
	held []netip.Addr
	over bool
}

// Times.
const (
	// lookEvery is how often facts are looked at that nobody announces.
	lookEvery = 250 * time.Millisecond
	// resync is how often everything is looked at although nothing was said to
	// have changed, such as after a directory was replaced.
	resync = 30 * time.Second
)

func (j *Job) below(path string) string { return filepath.Join(j.Root, path) }

// Run works until ctx ends. Then keepalived has given its VIPs away and ended,
// and nothing that Run started is left.
func (j *Job) Run(ctx context.Context) error {
	if err := j.prepare(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	if err := j.listen(ctx, &all); err != nil {
		return err
	}
	all.Go(func() { j.loop.Run(ctx) })
	all.Go(func() { j.watch(ctx) })
	j.loop.Trigger()
	<-ctx.Done()
	j.daemon.close() // before all else: a peer waits to take over
	all.Wait()
	j.checks.stop()
	return j.clean(context.Background())
}

// prepare makes the parts that belong together.
func (j *Job) prepare() (err error) {
	for _, dir := range []string{keepDir, filepath.Dir(v1alpha1.TrackDir)} {
		if err := os.MkdirAll(j.below(dir), 0o755); err != nil {
			return err
		}
	}
	if j.files, err = track.Open(j.below(v1alpha1.TrackDir)); err != nil {
		return err
	}
	j.board, j.said = health.NewBoard(), map[string]string{}
	j.see()
	j.checks = &checks{board: j.board, files: j.files, log: j.Log}
	conf := j.below(v1alpha1.KeepalivedConf)
	j.daemon = newChild(j.Program, j.Root, conf, j.clean, j.Log)
	j.applier = &apply.Applier{
		Path: conf, Check: apply.KeepalivedCheck(j.Program),
		Render: j.render, Reload: j.daemon.reload, Log: j.Log,
	}
	j.loop = apply.NewLoop(apply.DefaultTiming, j.apply)
	j.arrival.known = readSettings(j.below(keptSettings)) != nil
	if j.Role == v1alpha1.RoleBootstrap {
		j.tenure = newTenure(j.below(keptEnd))
		j.over = j.tenure.over
	}
	return nil
}

// listen subscribes to all that makes the job think again.
func (j *Job) listen(ctx context.Context, all *sync.WaitGroup) error {
	files := make(chan struct{}, 1)
	watched := []string{j.Source.Path, j.below(v1alpha1.KeepalivedTemplate), j.below(v1alpha1.ModeFile)}
	if err := watchFiles(ctx, watched, files, j.Log); err != nil {
		return err
	}
	network, err := nodeip.Watch(ctx)
	if err != nil {
		return err
	}
	if err := followFirewall(ctx, j.State, j.board); err != nil {
		return err
	}
	all.Go(func() {
		again := time.NewTicker(resync)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-files:
			case <-network:
				j.see()
			case <-j.Nodes.Changed():
			case <-again.C:
			}
			j.loop.Trigger()
		}
	})
	return nil
}

// watch looks at what is known of the node, and says how things stand.
func (j *Job) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if j.tenure != nil && j.tenure.look(time.Now(), j.board.Get) {
			j.Log.Info("the API server of this bootstrap host has gone: keepalived stops for good")
			if err := j.tenure.remember(); err != nil {
				j.Log.Error("the end of the bootstrap will not be remembered", "error", err)
			}
			j.mu.Lock()
			j.over = true
			j.mu.Unlock()
			j.loop.Trigger()
		}
		j.publish()
	}
}

// see notes which VIPs are on this node.
func (j *Job) see() {
	list, err := addresses()
	if err != nil {
		return // the next change, or resync, tries again
	}
	var held []netip.Addr
	for _, a := range list {
		held = append(held, ipOf(a))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = held
}

// apply brings everything in line with what is known now. It says whether
// keepalived was started, stopped or told to read its configuration.
func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	d, err := j.decide()
	j.complain("the node stays as it is", err)
	if err != nil {
		return false, err
	}
	if err := j.checks.follow(&d.cluster.Spec, j.Role, d.node.Labels); err != nil && d.takesPart() {
		return false, err
	}
	if !d.takesPart() {
		if changed = j.daemon.stop(); changed {
			j.Log.Info("keepalived stopped", "why", d.conf.Idle)
		}
		// Also when it did not run: what an earlier run left is still there.
		_, err := j.applier.Apply(ctx)
		return changed, errors.Join(err, removeVIPs(d.vips(), j.Log))
	}
	changed, err = j.applier.Apply(ctx)
	if err != nil && !j.lastGood(ctx) {
		return changed, err
	}
	if j.daemon.start() {
		j.Log.Info("keepalived starts", "vips", len(d.conf.Instances), "left out", d.conf.Idle)
		changed = true
	}
	if err != nil {
		return changed, err
	}
	err = writeSettings(j.below(keptSettings), *d.node.VRRP)
	j.complain("the settings of VRRP in force will not be remembered", err)
	return changed, err
}

// complain logs an error unless it is the one that was logged last.
func (j *Job) complain(what string, err error) {
	if err == nil {
		delete(j.said, what)
	} else if text := err.Error(); j.said[what] != text {
		j.said[what] = text
		j.Log.Error(what, "error", err)
	}
}

// decide looks at everything.
func (j *Job) decide() (*decision, error) {
	c, err := j.Source.Load()
	if err != nil {
		return nil, err
	}
	j.tell(c)
	snapshot, err := nodeip.Read()
	if err != nil {
		return nil, err
	}
	peers, registered, labels := j.Nodes.Current()
	n := &v1alpha1.Node{
		Name: j.Node, Role: j.Role, Labels: labels, Peers: peers,
		Unregistered: !registered && j.Role != v1alpha1.RoleBootstrap,
	}
	if c.Spec.LoadBalancer != v1alpha1.LoadBalancerExternal {
		v := inForce(c.Spec.VRRP, readSettings(j.below(keptSettings)))
		n.VRRP = &v
	}
	j.mu.Lock()
	over := j.over
	j.mu.Unlock()
	d, err := decide(c, n, nodeip.Choose(snapshot, &c.Spec), over)
	if err != nil {
		return nil, fmt.Errorf("facts of this node: %w", err)
	}
	if wait := j.arrival.wait(time.Now(), n.Unregistered); wait > 0 && d.takesPart() && j.tenure == nil {
		d.sit("the other nodes are still getting to know this one")
		time.AfterFunc(wait, j.loop.Trigger)
	}
	routers(j.board, &c.Spec, j.Nodes)
	j.mu.Lock()
	j.now = d
	j.mu.Unlock()
	return d, nil
}

// tell passes the facts of the cluster on when they are new.
func (j *Job) tell(c *v1alpha1.ClusterConfig) {
	if !reflect.DeepEqual(c, j.cluster) {
		j.cluster = c
		j.Nodes.SetCluster(c)
	}
}

// render gives keepalived.conf as it was decided last.
func (j *Job) render() ([]byte, error) {
	text, err := os.ReadFile(j.below(v1alpha1.KeepalivedTemplate))
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return templates.Execute("keepalived.conf.tmpl", string(text), j.now.conf)
}

// lastGood says whether keepalived can run with the configuration that is on
// disk from before, after the new one was refused.
func (j *Job) lastGood(ctx context.Context) bool {
	conf := j.below(v1alpha1.KeepalivedConf)
	if _, err := os.Stat(conf); err != nil {
		return false
	}
	return apply.KeepalivedCheck(j.Program)(ctx, conf) == nil
}

// clean removes VIPs that keepalived, which does not run now, did not (hard case
// 1).
func (j *Job) clean(context.Context) error {
	j.mu.Lock()
	d := j.now
	j.mu.Unlock()
	if d == nil {
		return nil
	}
	return removeVIPs(d.vips(), j.Log)
}

// publish says how things stand.
func (j *Job) publish() {
	s := State{Config: j.applier.Status(), Facts: j.board.Facts(), ClusterProblem: j.Source.Problem()}
	s.Wanted, s.PID, s.Restarts = j.daemon.status()
	j.mu.Lock()
	if d := j.now; d != nil {
		s.Idle, s.VRRP = d.conf.Idle, d.node.VRRP
		s.Instances = instances(d.conf, j.files.Values(), j.held)
	}
	j.mu.Unlock()
	if err := j.State.Publish(StateName, s); err != nil {
		j.Log.Warn("the state of this job is not known to others", "error", err)
	}
}
