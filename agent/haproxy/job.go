// Package haproxy runs HAProxy on a node: on the control plane in front of all known API
// servers, elsewhere in front of the control plane's HAProxy. Reloads refuse or reset no
// connection (hard case 18). The job publishes to the agent's other jobs whether HAProxy
// serves.
package haproxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/api/v1alpha1"
	template "github.com/vipgen/vipgen/templates/haproxy"
)

// binary is the program, found in the images' PATH.
const binary = "haproxy"

// masterSocket is the socket of the master process.
var masterSocket = filepath.Join(filepath.Dir(v1alpha1.HAProxySocket), "master.sock")

const (
	// versionTimeout is many times the duration of haproxy -v.
	versionTimeout = 10 * time.Second
	// reloadTimeout is many times the duration of a reload on a busy node.
	reloadTimeout = time.Minute
	// parting is how long HAProxy accepts connections after it was reported as not
	// serving: redirect and VIP leave meanwhile.
	parting = time.Second
	// drain bounds how long existing connections may continue. With job.ShutdownBound,
	// parting and the supervisor's grace it stays well below the pod's 60 seconds.
	drain = 20 * time.Second
	// backendPollEvery is the interval at which backends are polled, besides changes in
	// HAProxy's log.
	backendPollEvery = time.Second
)

// logLimit is many times what HAProxy logs at a start, or when all servers go down and
// come up again.
var logLimit = supervise.LogLimit{Rate: 4 << 10, Burst: 32 << 10}

// Job runs HAProxy.
type Job struct {
	Source *facts.Source
	State  *state.Dir
	Log    *slog.Logger
	// Checks counts the job's own check; it may be nil.
	Checks *health.Metrics

	daemon  daemon.Daemon
	loop    *daemon.Debouncer
	master  master
	silent  []string // silent servers, owned by watch
	printed printed
	// changes holds a value after HAProxy logged that a server changed.
	changes chan struct{}

	// Owned by the loop goroutine.
	version string // of the HAProxy in this container; empty until known
	addrs   []v1alpha1.Interface

	mu       sync.Mutex
	port     int // ready port of the running configuration
	serving  service
	leaving  bool
	backends []state.Backend
	silenced map[string]state.Silenced // never modified, only replaced
	ready    bool                      // an API server was ready at the last poll

	last    atomic.Pointer[state.HAProxy]
	failing logging.Transitions
}

// Run runs HAProxy until ctx ends, and then drains it.
func (j *Job) Run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(v1alpha1.HAProxyConf), 0o755); err != nil {
		return err
	}
	// In its pod it exists, open to all users of the container: HAProxy and the agent.
	// Elsewhere HAProxy runs as the agent's user.
	if err := os.MkdirAll(filepath.Dir(v1alpha1.HAProxySocket), 0o700); err != nil {
		return err
	}
	j.port, j.serving.why = v1alpha1.DefaultPorts.HAProxyReady, "HAProxy is not started yet"
	j.master = master{masterSocket}
	j.changes = make(chan struct{}, 1)
	j.Source.Templates = []string{v1alpha1.HAProxyTemplate}
	j.loop = daemon.NewDebouncer(j.apply)
	j.daemon = daemon.Daemon{
		Process: supervise.Supervisor{
			Command: supervise.Command{
				Path:         binary,
				Args:         []string{"-W", "-S", masterSocket + ",mode,666", "-f", v1alpha1.HAProxyConf},
				Unprivileged: true,
				Log:          logLimit, Logged: j.logged,
			},
			Before: j.starting, Ended: func() { j.ended(ctx.Err() != nil) }, Log: j.Log,
			Backoff: supervise.Backoff{Well: steadyAfter, AtOnce: true},
		},
		Conf: v1alpha1.HAProxyConf, Check: Check(binary), Reload: j.reload, Drain: j.drain,
	}
	j.publish()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { supervise.Reap(watching) })
	all.Go(func() { j.watch(watching) })
	var failed error
	all.Go(func() {
		defer stop() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(watching, j.loop.Changed)
	})
	all.Go(func() { j.loop.Run(watching) })
	<-watching.Done()
	j.daemon.Close()
	all.Wait()
	return failed
}

func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	conf, port, err := j.render()
	changed, err = j.daemon.Apply(ctx, daemon.Target{Conf: conf, Err: err})
	if err == nil {
		j.mu.Lock()
		j.port = port
		j.mu.Unlock()
	}
	j.publish()
	return changed, err
}

// starting publishes the restart.
func (j *Job) starting(context.Context) error {
	j.loop.Trigger()
	return nil
}

// render returns a configuration, and its ready port.
func (j *Job) render() (conf []byte, port int, err error) {
	text, err := os.ReadFile(v1alpha1.HAProxyTemplate)
	if err != nil {
		return nil, 0, err
	}
	cluster, node, err := j.Source.Current()
	if err != nil {
		return nil, 0, err
	}
	node.HAProxy = j.knownVersion()
	// A node that loses its address for a moment, for example when a bridge replaces the
	// interface, keeps its backends.
	if len(node.Interfaces) == 0 {
		node.Interfaces = j.addrs
	}
	j.addrs = node.Interfaces
	conf, err = template.Render(string(text), cluster, node)
	return conf, cluster.Spec.Ports.HAProxyReady, err
}

// knownVersion determines HAProxy's version once. While it is unknown, only keywords of
// all versions are used.
func (j *Job) knownVersion() string {
	if j.version == "" {
		ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
		defer cancel()
		var err error
		if j.version, err = version(ctx, binary); err != nil {
			j.Log.Warn("cannot determine HAProxy's version: only keywords of all versions are used", "error", err)
		}
	}
	return j.version
}

func (j *Job) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	began := time.Now()
	worker, err := j.master.reload(ctx)
	if err != nil {
		return err
	}
	j.Log.Info("HAProxy serves with a new worker", "pid", worker, "after", time.Since(began).Round(time.Millisecond))
	return nil
}

// drain makes the VIPs leave the node, stops accepting connections and waits for existing
// ones.
func (j *Job) drain() {
	j.leave()
	j.set(j.life(), false, "it is being stopped")
	time.Sleep(parting)
	pid := j.daemon.Process.PID()
	if err := j.daemon.Process.Signal(syscall.SIGUSR1); err != nil {
		return
	}
	j.Log.Info("HAProxy takes no more connections", "wait", drain)
	for end := time.Now().Add(drain); j.daemon.Process.PID() == pid && time.Now().Before(end); {
		time.Sleep(retryPause)
	}
}

// logged handles a line of HAProxy's log, and reports whether its text is new. Changes of
// servers read "Server api-servers/master-1 is DOWN, reason: Layer4 timeout" or "is UP".
func (j *Job) logged(line []byte) bool {
	if bytes.Contains(line, []byte(" is DOWN")) || bytes.Contains(line, []byte(" is UP")) {
		select {
		case j.changes <- struct{}{}:
		default: // a poll is pending
		}
	}
	return !j.printed.isDuplicate(line)
}

func (j *Job) poll(ctx context.Context) {
	text, err := ask(ctx, v1alpha1.HAProxySocket, "show stat")
	if err != nil {
		return // logged by the check
	}
	servers, err := parseServers(text)
	if err != nil {
		j.Log.Debug("cannot parse HAProxy's statistics", "error", err)
		return
	}
	j.endSilent(ctx, silentServers(servers, j.silent))
	j.mu.Lock()
	j.backends, j.ready = backends(servers), ready(servers)
	j.mu.Unlock()
	j.publish()
}

func (j *Job) publish() {
	s := state.HAProxy{Daemon: j.daemon.Status()}
	if problem := j.Source.Problem(); problem != "" {
		s.Problem = problem
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Serving, s.Restarting, s.Why = j.serving.is, j.serving.restarting, j.serving.why
	s.Leaving, s.Backends, s.Silenced = j.leaving, j.backends, j.silenced
	s.Own = !v1alpha1.ControlPlaneRole(j.Source.Role)
	s.Ready = s.Serving && j.ready
	j.last.Store(&s)
	j.failing.Error(j.Log, j.State.Publish(s), "cannot publish the state of HAProxy", "state published again")
}

// probe returns nil if HAProxy answers, for a liveness probe. Backends do not matter: a
// restart would not change them.
func probe(ctx context.Context) error {
	answer, err := ask(ctx, v1alpha1.HAProxySocket, "show info")
	if err == nil && answer == "" {
		err = errors.New("no answer")
	}
	return err
}
