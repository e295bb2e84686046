package keepalived

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/agent/trackfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// What the job keeps over restarts and reboots, in the one directory on the disk
// that its pod may write to.
const (
	keepDir      = "/etc/keepalived"
	keptSettings = keepDir + "/.vipgen-vrrp.json"
	keptEnd      = keepDir + "/.vipgen-bootstrap-gone"
	// keptQueues goes with a reboot, as what it is about does.
	keptQueues = v1alpha1.RunDir + "/keepalived/queues.json"
	keptVIPs   = v1alpha1.RunDir + "/keepalived/vips.json"
)

// Job runs keepalived on a node.
type Job struct {
	// Root is where the host's file system is.
	Root string
	// Source has the facts of the node, the other nodes among them.
	Source *facts.Source
	// State is where the job says what it does, and reads what others do.
	State *state.Dir
	// Program is keepalived, looked up in PATH.
	Program string
	Log     *slog.Logger
	// Checks measures the checks of the node; it may be nil.
	Checks *health.Metrics

	files    *trackfile.Files
	board    *health.Board
	checks   *checks
	daemon   *child
	queues   queues
	guard    guarding
	wire     *wire
	recorded recordedVIPs
	rivals   *rivals
	garp     *garp
	applier  *daemon.Applier
	loop     *daemon.Debouncer
	lifetime *bootstrapLifetime // of the bootstrap; nil elsewhere

	// Of the loop's goroutine alone.
	idle       []string // why VIPs are left out, as it was logged
	join       joinDelay
	mismatches addressMismatches
	unknown    []netip.Addr // VIPs whose holder does not know this node, as it was logged
	sources    sources
	electing   electing
	begun      time.Time

	// Of the watch's goroutine alone.
	dump       dump
	scheduling scheduling

	watchdog  liveness.Watchdog
	told      atomic.Pointer[state.Keepalived]
	telling   logging.Transitions
	deciding  logging.Transitions
	checking  logging.Transitions
	keeping   logging.Transitions
	cleaning  logging.Transitions
	bounding  logging.Transitions
	hearing   logging.Transitions
	recording logging.Transitions
	choosing  logging.Transitions

	mu  sync.Mutex
	now *decision // nil before the first
	// Copies of what electing has.
	migration *state.Migration
	moves     state.Moves
	held      []netip.Addr
	// Copies of what lifetime has.
	over, resumed bool
}

const (
	// lookEvery is how often it is looked at what nobody announces, on the
	// bootstrap.
	lookEvery = 250 * time.Millisecond
	// sayEvery is how often the job says how things stand, if that is new.
	sayEvery = time.Second
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
	if err := j.checks.redirects.run(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { supervise.Reap(ctx) })
	all.Go(func() { j.loop.Run(ctx) })
	all.Go(func() { j.watch(ctx) })
	all.Go(func() { j.garp.run(ctx) })
	var failed error
	all.Go(func() {
		defer cancel() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(ctx, func() {
			switch deaf := j.see(); {
			case j.lost():
				j.loop.Now() // before the others hear this node no more
			case deaf:
				j.loop.Urge()
			default:
				j.loop.Trigger()
			}
		})
	})
	<-ctx.Done()
	j.handOver() // before all else: clients must not notice that this node ends
	j.daemon.close()
	all.Wait()
	j.checks.stop()
	j.guard.end()
	j.bound(nil)
	j.wire.follow(nil, nil)
	j.rivals.follow(nil)
	return errors.Join(failed, j.clean(context.Background()))
}

// prepare makes the parts that belong together.
func (j *Job) prepare() (err error) {
	for _, dir := range []string{keepDir, filepath.Dir(v1alpha1.TrackDir)} {
		if err := os.MkdirAll(j.below(dir), 0o755); err != nil {
			return err
		}
	}
	j.adopt()
	if j.files, err = trackfile.Open(j.below(v1alpha1.TrackDir)); err != nil {
		return err
	}
	j.board = health.NewBoard()
	j.Source.Templates = []string{j.below(v1alpha1.KeepalivedTemplate), j.below(v1alpha1.ModeFile), j.below(v1alpha1.UserModeFile)}
	j.checks = &checks{board: j.board, files: j.files, metrics: j.Checks, log: j.Log, redirects: &redirects{dir: j.State, board: j.board}}
	j.queues = queues{j.below(keptQueues)}
	j.guard.log = j.Log
	j.guard.begin()
	if err := j.recorded.open(j.below(keptVIPs)); err != nil {
		j.Log.Warn("ignoring which VIPs an earlier keepalived may have left here", "error", err.Error())
	}
	j.dump.path = j.below(dumpFile)
	j.scheduling.file = j.below(vrrpPID)
	conf := j.below(v1alpha1.KeepalivedConf)
	j.daemon = newChild(j.Program, j.Root, conf, j.starting, j.clean, j.Log)
	j.applier = &daemon.Applier{
		Path: conf, Check: Check(j.Program),
		Render: j.render, Reload: j.daemon.reload, Log: j.Log,
	}
	j.loop = daemon.NewDebouncer(daemon.DefaultTiming, j.apply)
	j.begun = time.Now()
	j.wire = &wire{log: j.Log, changed: j.loop.Now}
	j.garp = newGARP(j.Log)
	j.rivals = &rivals{log: j.Log, changed: j.loop.Now}
	j.join.known = readSettings(j.below(keptSettings)) != nil
	if j.Source.Role == v1alpha1.RoleBootstrap {
		j.lifetime = newBootstrapLifetime(j.below(keptEnd))
		j.over = j.lifetime.over
	}
	return nil
}

// watch looks at what is known of the node, and says how things stand.
func (j *Job) watch(ctx context.Context) {
	every := sayEvery
	if j.lifetime != nil {
		every = lookEvery
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tick.Reset(ticker.UntilNext(every))
		if j.lifetime != nil && j.lifetime.look(time.Now(), j.board.Get) {
			said := "the API server of this bootstrap host is ready again: keepalived may run again"
			if j.lifetime.over {
				said = "the API server of this bootstrap host has gone: keepalived stops until it is ready again"
			}
			j.Log.Info(said)
			if err := j.lifetime.remember(); err != nil {
				j.Log.Error("whether the API server of this bootstrap host has gone will not be remembered", "error", err)
			}
			j.mu.Lock()
			j.over, j.resumed = j.lifetime.over, j.lifetime.resumed
			j.mu.Unlock()
			j.loop.Trigger()
		}
		_, running, _ := j.daemon.status()
		j.scheduling.look(running != 0, j.Log)
		j.guard.look(time.Now())
		j.publish()
		j.watchdog.Reset()
	}
}

// see notes which VIPs are on this node. It says whether keepalived has lost an
// address that it hears adverts at: it would take the VIP within a few of them.
func (j *Job) see() bool {
	list, err := addresses()
	if err != nil {
		return false // the next change, or resync, tries again
	}
	var held []netip.Addr
	for _, a := range list {
		held = append(held, ipOf(a))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.garp.announce(j.came(held))
	j.held = held
	return j.now != nil && deaf(j.now.conf.Instances, held)
}

// apply brings everything in line with what is known now. It says whether
// keepalived was started, stopped or told to read its configuration.
func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	d, err := j.decide()
	j.deciding.Error(j.Log, err, "the node stays as it is", "it is known again what the node is to run")
	if err != nil {
		return false, err
	}
	err = j.checks.follow(&d.cluster.Spec, d.node.Role, d.node.Labels)
	j.checking.Error(j.Log, err, "this node is not checked anew", "this node is checked again")
	if err != nil && d.takesPart() {
		return false, err
	}
	j.leaveOut(d.conf.Idle)
	j.record(d)
	if !d.takesPart() {
		if changed = j.daemon.stop(); changed {
			j.Log.Info("keepalived stopped")
		}
		// Also when it did not run: what an earlier run left is still there.
		j.guard.end()
		j.bound(nil)
		_, err := j.applier.Apply(ctx)
		return changed, errors.Join(err, j.clean(ctx))
	}
	j.bound(d.conf.Instances)
	j.guard.admit(guardGroups(append(j.wire.instances(), d.conf.Instances...), d.node.Peers))
	changed, err = j.applier.Apply(ctx)
	if err != nil && !j.lastGood(ctx) {
		return changed, err
	}
	if j.daemon.start() {
		j.Log.Info("keepalived starts", "vips", len(d.conf.Instances))
		changed = true
	}
	if err != nil {
		return changed, err
	}
	j.guard.applied(time.Now())
	err = writeSettings(j.below(keptSettings), *d.node.VRRP)
	j.keeping.Error(j.Log, err, "the settings of VRRP in force will not be remembered", "the settings of VRRP in force are remembered again")
	return changed, err
}

// record remembers the VIPs that keepalived is about to get, and forgets those that
// are neither the cluster's nor on this node any more.
func (j *Job) record(d *decision) {
	j.mu.Lock()
	looked, here := j.held != nil, append(d.vips(), j.held...)
	j.mu.Unlock()
	var vips []netip.Addr
	for _, i := range d.conf.Instances {
		vips = append(vips, i.VIP.Addr())
	}
	err := j.recorded.note(vips, func(a netip.Addr) bool { return looked && !slices.Contains(here, a) })
	j.recording.Warn(j.Log, err, "VIPs that change while keepalived is killed may be left here", "VIPs that may be left here are remembered again")
}

// leaveOut logs which VIPs are left out, and why, when that changed.
func (j *Job) leaveOut(why []string) {
	if !slices.Equal(why, j.idle) {
		j.idle = slices.Clone(why)
		j.Log.Info("VIPs that this node leaves out", "why", why)
	}
}

// bound bounds what waits for peers that are dead.
func (j *Job) bound(instances []keepalived.Instance) {
	buffer, err := sendBuffer()
	if err == nil {
		err = j.queues.bound(bounds(instances, buffer))
	}
	j.bounding.Error(j.Log, err, "dead peers may keep living ones from hearing this node", "dead peers keep nobody from hearing this node again")
}

// decide looks at everything.
func (j *Job) decide() (*decision, error) {
	f, err := j.Source.Facts()
	if err != nil {
		return nil, err
	}
	spec := &f.Cluster.Spec
	var conf *keepalived.Conf
	if spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		var v v1alpha1.VRRPSettings
		v, conf = j.elect(f)
		f.Node.VRRP = &v
	}
	j.mu.Lock()
	over, resumed := j.over, j.resumed
	j.mu.Unlock()
	d := decide(f, conf, over)
	var alone []keepalived.Instance
	switch {
	case j.electing.leftOut:
		d.disable(whyLeftOut)
	case j.lifetime == nil:
		alone = j.keepOut(d, f)
	case resumed:
		j.resume(d)
	}
	j.rivals.follow(alone)
	routers(j.board, spec, f.Node, j.Source.Nodes)
	j.mu.Lock()
	j.now, j.migration, j.moves = d, nil, j.electing.counts
	if s := j.electing.status; s != nil {
		m := *s
		j.migration = &m
	}
	j.mu.Unlock()
	return d, nil
}

// resume leaves all of it out on a bootstrap whose API server was away, once the cluster
// does without it, so that nodes which came since do not know it, or while the holder of
// a VIP does not.
func (j *Job) resume(d *decision) {
	wanted, _, _ := j.daemon.status()
	switch {
	case d.node.BootstrapGone:
		d.disable("the cluster does without this bootstrap host")
	case !wanted && d.takesPart() && j.askLink(d, d.conf.Instances) == unknownTo:
		d.disable("the holder of a VIP does not know this bootstrap host any more")
		time.AfterFunc(doubtTime, j.loop.Trigger)
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
	return Check(j.Program)(ctx, conf) == nil
}

// starting prepares a start of keepalived.
func (j *Job) starting(ctx context.Context) error {
	j.mu.Lock()
	d := j.now
	j.mu.Unlock()
	if d != nil {
		for _, i := range d.conf.Instances {
			greet(i.Peers)
		}
	}
	return j.clean(ctx)
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
	return j.removeAll(d)
}

// removeAll removes the VIPs of a decision, and those of before.
func (j *Job) removeAll(d *decision) error {
	err := removeVIPs(j.recorded.with(d.vips()), j.Log)
	j.cleaning.Error(j.Log, err, "a VIP cannot be removed from this node, which does not hold it", "the VIPs are removed from this node")
	return err
}

// publish says how things stand.
func (j *Job) publish() {
	s := state.Keepalived{Config: j.applier.Status(), Facts: j.board.Facts(), ClusterProblem: j.Source.Problem()}
	s.Wanted, s.PID, s.Restarts = j.daemon.status()
	s.Scheduling = string(j.scheduling.policy)
	s.Guard = j.guard.state()
	holders := j.dump.look()
	j.mu.Lock()
	if d := j.now; d != nil {
		s.Idle, s.VRRP, s.Migration, s.Moves = d.conf.Idle, d.node.VRRP, j.migration, j.moves
		s.Instances = instances(d.conf, j.files.Values(), j.held)
		for i := range s.Instances {
			heldBy(&s.Instances[i], holders, d.node.Peers)
		}
	}
	j.mu.Unlock()
	before := j.told.Swap(&s)
	for _, i := range s.Instances {
		if i.Holds != holds(before, i.VIP) {
			j.Log.Info("VIP", "vip", i.VIP, "heldHere", i.Holds, "priority", i.Priority)
		}
	}
	j.telling.Error(j.Log, j.State.Publish(s), "the other jobs cannot be told how keepalived is", "the other jobs can be told again")
}
