package keepalived

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/gate"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
)

// Run works until ctx ends. When it returns keepalived has handed over its VIPs and
// ended, and everything that Run started has stopped.
func (j *Job) Run(ctx context.Context) error {
	if err := j.prepare(ctx); err != nil {
		return err
	}
	defer j.record.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := j.checks.Watch(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { supervise.Reap(ctx) })
	all.Go(func() { j.loop.Run(ctx) })
	all.Go(func() { j.watch(ctx) })
	// Claims of this node's addresses are answered until its VIPs have moved: a host that a claim misleads
	// sends adverts elsewhere, and both would hold them (hard case 51).
	held, moved := context.WithCancel(context.WithoutCancel(ctx))
	defer moved()
	all.Go(func() { j.neighbours.Run(held) })
	all.Go(func() { j.tickler.Run(ctx) })
	var failed error
	all.Go(func() {
		defer cancel() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(ctx, func(settled bool) {
			if j.observe() {
				j.loop.Now() // before peers lose this node, or it them
			} else {
				j.loop.Changed(settled)
			}
		})
	})
	<-ctx.Done()
	j.record.add(events.AgentStopping)
	j.daemon.Close() // before all else: clients must not notice that this node ends
	moved()
	all.Wait()
	j.record.ended(failed)
	j.checks.Stop()
	j.guard.end()
	j.neighbours.Limit(nil)
	j.settings.adverts.follow(nil, nil)
	j.members.Close()
	j.neighbours.Defend(nil)
	return errors.Join(failed, j.clean(context.Background()))
}

func (j *Job) prepare(ctx context.Context) (err error) {
	for _, dir := range []string{keepDir, filepath.Dir(v1alpha1.TrackDir)} {
		if err := os.MkdirAll(j.below(dir), 0o755); err != nil {
			return err
		}
	}
	_, err = os.Stat(j.below(v1alpha1.TrackDir))
	booted := errors.Is(err, fs.ErrNotExist)
	if j.files, err = health.OpenTrackFiles(j.below(v1alpha1.TrackDir)); err != nil {
		return err
	}
	j.checks = gate.New(j.files, j.State, j.Checks, j.Log)
	j.Source.Templates = []string{j.below(v1alpha1.KeepalivedTemplate), j.below(v1alpha1.ModeFile), j.below(v1alpha1.UserModeFile)}
	j.neighbours = neighbours.New(j.below(keptQueues), j.claimed, j.Log)
	j.guard.log = j.Log
	j.guard.begin()
	j.vips.path, j.vips.log = j.below(keptVIPs), j.Log
	if err := j.vips.read(); err != nil {
		j.Log.Warn("cannot read the stored VIPs of an earlier keepalived", "error", err.Error())
	}
	j.daemon = newDaemon(ctx, j.Program, j.Root, j.below(v1alpha1.KeepalivedConf), j.starting, j.died, j.Log)
	j.daemon.Drain = j.handOver
	j.loop = daemon.NewDebouncer(j.apply)
	j.settings.begun, j.settings.adverts = time.Now(), &advertListener{log: j.Log, changed: j.loop.Now}
	j.tickler = tickle.New(v1alpha1.ClientsPort, j.Log)
	j.members = membership.New(readSettings(j.below(keptSettings)) != nil, j.Source.Nodes, j.loop, j.Log)
	if j.Source.Role == v1alpha1.RoleBootstrap {
		j.bootstrap = gate.NewLifetime(j.below(keptEnd), j.Log)
	}
	j.record = openRecord(j.below(keepDir), j.Source.Name, j.Source.Role, booted, j.Log)
	j.checks.Board.Notify = j.record.checked
	j.daemon.Process.Command.Logged = func(line []byte) bool {
		j.record.line(line)
		return !wroteState(line)
	}
	reload := j.daemon.Reload
	j.daemon.Reload = func(ctx context.Context) error {
		j.record.add(events.KeepalivedReload)
		return reload(ctx)
	}
	return nil
}
