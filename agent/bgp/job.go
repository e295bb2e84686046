package bgp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/gate"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/unnumbered"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// pollEvery is the poll interval for facts without notifications, such as sessions and
// routes that something else removed.
const pollEvery = time.Second

// keptEnd marks a bootstrap host whose API server has gone.
var keptEnd = filepath.Join(filepath.Dir(v1alpha1.BGPKept), ".vipgen-bootstrap-gone")

// Job announces the VIPs of a node. Its state is owned by the goroutine of Run.
type Job struct {
	// Root is the root of the host's file system.
	Root   string
	Source *facts.Source
	State  *state.Dir
	Log    *slog.Logger
	// Checks counts the health checks of the node; it may be nil.
	Checks *health.Metrics

	gate      *gate.Checks
	bootstrap *gate.Lifetime // nil except on the bootstrap
	facts     *facts.Facts   // nil before the first
	record    *events.Ring   // for `vipgen doctor`
	leaving   bool

	speaker Speaker // nil while none runs
	options SpeakerOptions
	// unnumbered finds the routers of sessions by interface.
	unnumbered *unnumbered.Interfaces
	announced  map[netip.Addr]Route
	others     []netdump.Connection // with routers that had no session with this job in the last turn
	// held are VIPs that stay local for a while after their withdrawal.
	held map[netip.Addr]time.Time

	wake     chan struct{} // holds a value while a turn is due
	outdated atomic.Bool   // facts may have changed
	watchdog liveness.Watchdog
	last     atomic.Pointer[state.BGP]

	deciding, announcing, routing, publishing logging.Transitions
}

// Run announces VIPs until ctx ends, and then leaves in the order of leave.
func (j *Job) Run(ctx context.Context) error {
	if err := supervise.RaiseThreads(); err != nil {
		j.Log.Warn("BGP runs without real-time scheduling: on a busy node BFD may be late, and routers take the node for dead", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.wake = make(chan struct{}, 1)
	j.announced, j.held = map[netip.Addr]Route{}, map[netip.Addr]time.Time{}
	j.unnumbered = unnumbered.New(j.Log, j.trigger)
	j.gate = gate.New(terms{j.trigger}, j.State, j.Checks, j.Log)
	defer j.gate.Stop()
	j.record = events.Open(filepath.Join(j.Root, filepath.Dir(v1alpha1.BGPKept)), j.Source.Name, name, j.Log)
	defer j.record.Close()
	j.record.Record(events.Event{Kind: events.AgentStarted, Role: j.Source.Role})
	j.gate.Board.Notify = j.checked
	if j.Source.Role == v1alpha1.RoleBootstrap {
		j.bootstrap = gate.NewLifetime(filepath.Join(j.Root, keptEnd), j.Log)
	}
	if err := errors.Join(j.gate.Watch(ctx), j.holdExisting()); err != nil {
		return err
	}
	var watching sync.WaitGroup
	var failed error
	watching.Go(func() {
		defer cancel() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(ctx, func(bool) {
			j.outdated.Store(true)
			j.trigger()
		})
	})
	j.loop(ctx)
	j.record.Record(events.Event{Kind: events.AgentStopping})
	j.leave()
	watching.Wait()
	stopped := events.Event{Kind: events.AgentStopped}
	if failed != nil {
		stopped.Why = job.FirstLine(failed.Error())
	}
	j.record.Record(stopped)
	return failed
}

func (j *Job) loop(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.wake:
		case <-tick.C:
		}
		j.turn()
	}
}

// trigger makes a turn due.
func (j *Job) trigger() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// terms notifies the job of changes of the facts on the board, of which it makes its own
// use.
type terms struct{ notify func() }

func (t terms) Ensure([]vrrp.Term) error { return nil }

func (t terms) Set(string, bool) (changed bool, err error) {
	t.notify()
	return false, nil
}

func (t terms) Repeat() error { return nil }
