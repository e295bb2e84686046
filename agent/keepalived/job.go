package keepalived

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/agent/keepalived/record"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/agent/trackfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/liveness"
)

// What the job keeps over restarts and reboots, in the one directory on the disk
// that its pod may write to.
const (
	keepDir      = "/etc/keepalived"
	keptSettings = keepDir + "/.vipgen-vrrp.json"
	keptEnd      = keepDir + "/.vipgen-bootstrap-gone"
	// The record of events is there, too: events.FileName.
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

	files     *trackfile.Files
	board     *health.Board
	checks    *checks
	daemon    *daemon.Daemon
	queues    *neighbours.Queues
	guard     guarding
	adverts   *advertListener
	recorded  recordedVIPs
	record    *record.Record
	defence   *neighbours.Defence
	members   *membership.Membership
	announcer *neighbours.Announcer
	tickler   *tickle.Tickler
	loop      *daemon.Debouncer
	begun     time.Time

	looping  looping
	watching watching
	shared   shared
	cleaning logging.Transitions
}

// looping is of the loop's goroutine alone.
type looping struct {
	settings settings
	idle     []string // why VIPs are left out, as it was logged
	deciding logging.Transitions
}

// watching is of the watch's goroutine alone, but for what others read.
type watching struct {
	lifetime   *bootstrapLifetime // nil elsewhere than on the bootstrap
	dump       dump
	scheduling scheduling
	watchdog   liveness.Watchdog
	told       atomic.Pointer[state.Keepalived]
	telling    logging.Transitions
}

// shared is what several goroutines read and write.
type shared struct {
	mu  sync.Mutex
	now *decision // nil before the first
	// Copies of what settings has.
	migration *state.Migration
	moves     state.Moves
	// Copies of what lifetime has.
	over, resumed bool
}

// decided is what the node is to run, as it was decided last; nil before.
func (s *shared) decided() *decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// lost reports whether the others see this node in another way than it was decided on.
func (j *Job) lost() bool {
	d := j.shared.decided()
	return j.Source.Nodes != nil && d != nil && membership.Lost(&d.cluster.Spec, d.self, j.Source.Nodes.Current().Self, d.conf.Instances)
}

func (j *Job) below(path string) string { return filepath.Join(j.Root, path) }

// Run works until ctx ends. Then keepalived has given its VIPs away and ended,
// and nothing that Run started is left.
func (j *Job) Run(ctx context.Context) error {
	if err := j.prepare(ctx); err != nil {
		return err
	}
	defer j.record.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := errors.Join(j.checks.redirects.run(ctx), j.checks.answers.run(ctx)); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { supervise.Reap(ctx) })
	all.Go(func() { j.loop.Run(ctx) })
	all.Go(func() { j.watch(ctx) })
	all.Go(func() { j.announcer.Run(ctx) })
	all.Go(func() { j.tickler.Run(ctx) })
	var failed error
	all.Go(func() {
		defer cancel() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(ctx, func(settled bool) {
			if deaf := j.see(); deaf || j.lost() {
				j.loop.Now() // before the others hear this node no more, or it them
			} else {
				j.loop.Changed(settled)
			}
		})
	})
	<-ctx.Done()
	j.record.Add(events.AgentStopping)
	j.daemon.Close() // before all else: clients must not notice that this node ends
	all.Wait()
	j.record.End(failed)
	j.checks.stop()
	j.guard.end()
	j.queues.Limit(nil)
	j.adverts.follow(nil, nil)
	j.members.Close()
	j.defence.Follow(nil)
	return errors.Join(failed, j.clean(context.Background()))
}

// prepare makes the parts that belong together.
func (j *Job) prepare(ctx context.Context) (err error) {
	for _, dir := range []string{keepDir, filepath.Dir(v1alpha1.TrackDir)} {
		if err := os.MkdirAll(j.below(dir), 0o755); err != nil {
			return err
		}
	}
	_, err = os.Stat(j.below(v1alpha1.TrackDir))
	booted := errors.Is(err, fs.ErrNotExist)
	j.adopt()
	if j.files, err = trackfile.Open(j.below(v1alpha1.TrackDir)); err != nil {
		return err
	}
	j.board = health.NewBoard()
	j.Source.Templates = []string{j.below(v1alpha1.KeepalivedTemplate), j.below(v1alpha1.ModeFile), j.below(v1alpha1.UserModeFile)}
	j.checks = &checks{board: j.board, files: j.files, metrics: j.Checks, log: j.Log, redirects: &redirects{dir: j.State, board: j.board}, answers: newAnswers(j.State)}
	j.queues = neighbours.NewQueues(j.below(keptQueues), j.Log)
	j.guard.log = j.Log
	j.guard.begin()
	if err := j.recorded.open(j.below(keptVIPs)); err != nil {
		j.Log.Warn("ignoring which VIPs an earlier keepalived may have left here", "error", err.Error())
	}
	j.watching.dump.path = j.below(dumpFile)
	j.watching.scheduling.file = j.below(vrrpPID)
	j.daemon = newDaemon(ctx, j.Program, j.Root, j.below(v1alpha1.KeepalivedConf), j.starting, j.died, j.Log)
	j.daemon.Drain = j.handOver
	j.loop = daemon.NewDebouncer(j.apply)
	j.begun = time.Now()
	j.adverts = &advertListener{log: j.Log, changed: j.loop.Now}
	j.announcer = neighbours.NewAnnouncer(j.Log)
	j.tickler = tickle.New(v1alpha1.ClientsPort, j.Log)
	j.defence = neighbours.NewDefence(j.announcer, j.Log)
	j.members = membership.New(readSettings(j.below(keptSettings)) != nil, j.Source.Nodes, j.loop, j.Log)
	if j.Source.Role == v1alpha1.RoleBootstrap {
		j.watching.lifetime = newBootstrapLifetime(j.below(keptEnd))
		j.shared.over = j.watching.lifetime.over
	}
	j.record = record.Open(j.below(keepDir), j.Source.Name, j.Source.Role, booted, j.Log)
	j.board.Told = j.record.Check
	j.daemon.Process.Command.Logged = j.record.Line
	reload := j.daemon.Reload
	j.daemon.Reload = func(ctx context.Context) error {
		j.record.Add(events.KeepalivedReload)
		return reload(ctx)
	}
	return nil
}
