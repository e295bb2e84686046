// Package coredns runs CoreDNS on a node: its Corefile follows cluster.yaml, the node's
// addresses and the network's name servers, its hosts file the nodes.
package coredns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/resolvconf"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/lists"
	template "github.com/vipgen/vipgen/templates/coredns"
)

// server is CoreDNS' address for the job's queries: it listens on loopback on every node.
const server = "127.0.0.1:53"

// reloadTimeout is many times the duration of a reload on a busy node.
const reloadTimeout = 30 * time.Second

// Job runs CoreDNS.
type Job struct {
	Source *facts.Source
	State  *state.Dir
	// Program is the path of CoreDNS, looked up in PATH if it has no slash.
	Program string
	Log     *slog.Logger
	// Checks counts the job's own check; it may be nil.
	Checks *health.Metrics

	daemon daemon.Daemon
	loop   *daemon.Debouncer
	output *output

	reading logging.Transitions // the state of the mdns job
	naming  logging.Transitions // names of nodes

	mu      sync.Mutex
	shown   state.CoreDNS // all except Daemon
	last    atomic.Pointer[state.CoreDNS]
	failing logging.Transitions
}

// Run runs CoreDNS until ctx ends.
func (j *Job) Run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(v1alpha1.Corefile), 0o755); err != nil {
		return err
	}
	var err error
	if j.output, err = newOutput(); err != nil {
		return err
	}
	j.shown.Why = "CoreDNS is not started yet"
	j.Source.Templates = []string{v1alpha1.CorefileTemplate, v1alpha1.HostsTemplate}
	j.Source.ResolvConf = resolvconf.Source
	j.loop = daemon.NewDebouncer(j.apply)
	j.daemon = daemon.Daemon{
		Process: supervise.Supervisor{
			Command: supervise.Command{
				Path: j.Program, Args: []string{"-conf", v1alpha1.Corefile},
				Stdout: j.output.write, Stderr: j.output.write, Unprivileged: true,
			},
			Before: j.starting, Log: j.Log,
		},
		Conf: v1alpha1.Corefile, Check: Check(j.Program), Reload: j.reload,
	}
	j.publish()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	neighbours, err := j.State.Watch(watching, state.MDNS{})
	if err != nil {
		return err
	}
	var all, reading sync.WaitGroup
	reading.Go(func() { j.output.run(logging.Lines(j.Log, name)) })
	all.Go(func() { supervise.Reap(watching) })
	all.Go(func() { j.check().Run(watching, j.report) })
	all.Go(func() {
		for range neighbours {
			j.loop.Trigger()
		}
	})
	var failed error
	all.Go(func() {
		defer stop() // exit when the watch fails: kubelet starts the job again
		failed = j.Source.Watch(watching, j.loop.Changed)
	})
	all.Go(func() { j.loop.Run(watching) })
	<-watching.Done()
	j.daemon.Close()
	all.Wait()
	j.output.close()
	reading.Wait()
	return failed
}

func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	conf, err := j.render()
	changed, err = j.daemon.Apply(ctx, daemon.Target{Conf: conf, Err: err})
	j.publish()
	return changed, err
}

// starting publishes the restart.
func (j *Job) starting(context.Context) error {
	j.output.starting()
	j.loop.Trigger()
	return nil
}

// render writes the hosts file, which CoreDNS rereads by itself within a second, and
// returns the Corefile. Added and removed nodes change only the hosts file, and need no
// reload (hard case 20).
func (j *Job) render() ([]byte, error) {
	cluster, node, err := j.Source.Current()
	if err != nil {
		return nil, err
	}
	found := j.neighbours(cluster, node)
	node.Peers = append(node.Peers, found...)
	text, err := os.ReadFile(v1alpha1.HostsTemplate)
	if err != nil {
		return nil, err
	}
	hosts, err := template.RenderHosts(string(text), cluster, node)
	if err != nil {
		return nil, err
	}
	if refused := template.Nodes(cluster, node).Refused; len(refused) > 0 {
		err = fmt.Errorf("%d nodes, such as %s, have names of the cluster's own", len(refused), refused[0])
	}
	j.naming.Warn(j.Log, err, "nodes left out of the hosts file", "no node left out of the hosts file any more")
	changed, err := fileio.Write(v1alpha1.HostsFile, hosts, 0o644)
	if err != nil {
		return nil, err
	}
	if changed {
		j.Log.Info("names of nodes written", "file", v1alpha1.HostsFile, "peers", len(node.Peers), "ofMDNS", len(found))
	}
	j.mu.Lock()
	j.shown.Name = "api." + cluster.Spec.Domain
	if len(cluster.Spec.Groups) == 0 { // without VIPs CoreDNS does not answer for that name
		j.shown.Name = strings.TrimSuffix(node.Name, "."+cluster.Spec.Domain) + "." + cluster.Spec.Domain
	}
	j.shown.MDNS = lists.Map(found, func(p v1alpha1.Peer) string { return p.Name })
	j.shown.Upstreams = lists.Map(template.New(cluster, node).Upstreams, netip.Addr.String)
	j.mu.Unlock()
	if text, err = os.ReadFile(v1alpha1.CorefileTemplate); err != nil {
		return nil, err
	}
	return template.Render(string(text), cluster, node)
}

// reload reloads by signal, which acts at once and reports the result.
func (j *Job) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	return j.output.reload(ctx, func() error { return j.daemon.Process.Signal(syscall.SIGUSR1) })
}

func (j *Job) check() health.Check {
	return health.Check{
		Name: health.FactDNS, Rise: 1, Fall: 2, Timeout: time.Second,
		Interval: time.Second, Confirm: 50 * time.Millisecond, Metrics: j.Checks,
		Probe: func(ctx context.Context) error { return ask(ctx, j.name()) },
	}
}

func (j *Job) name() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shown.Name
}

func (j *Job) report(f state.Fact) {
	j.mu.Lock()
	j.shown.Serving, j.shown.Why = f.OK, f.Why
	if f.OK {
		j.Log.Info("CoreDNS answers", "name", j.shown.Name)
	} else {
		j.Log.Warn("CoreDNS does not answer", "error", j.shown.Why)
	}
	j.mu.Unlock()
	j.publish()
}

func (j *Job) publish() {
	status := j.daemon.Status()
	if problem := j.Source.Problem(); problem != "" {
		status.Problem = problem
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.shown
	s.Upstreams, s.MDNS, s.Daemon = slices.Clone(s.Upstreams), slices.Clone(s.MDNS), status
	j.last.Store(&s)
	j.failing.Error(j.Log, j.State.Publish(s), "cannot publish the state of CoreDNS", "state published again")
}

// ask queries the address of the API: CoreDNS answers without an error even for an
// address family without one.
func ask(ctx context.Context, name string) error {
	if name == "" {
		return errors.New("the cluster's domain is not known yet")
	}
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA)
	answer, err := dns.ExchangeContext(ctx, question, server)
	if err != nil {
		return err
	}
	if answer.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("%s: %s", name, dns.RcodeToString[answer.Rcode])
	}
	return nil
}

// probe queries CoreDNS for the API's name, for a liveness probe.
func probe(ctx context.Context, dir *state.Dir) error {
	s, err := state.Read[state.CoreDNS](dir)
	if err != nil {
		return err
	}
	if s == nil {
		return nil // the job answered, but published no state (hard case 54)
	}
	return ask(ctx, s.Name)
}
