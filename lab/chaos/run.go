package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// run is a run in progress.
type run struct {
	cfg      *Config
	bounds   Bounds
	spare    spares
	spareVIP netip.Addr
	hostile  *netns.Node // a host on the network that is no node
	ingress  *v1alpha1.Group
	cluster  *lab.Cluster
	routed   *routed // nil unless routers know the VIPs by BGP
	record   *record
	files    *files
	stop     context.CancelFunc // ends the faults

	normal []normal      // of each node, at rest
	served time.Duration // start of the time without a deviation, until normal is known

	mu     sync.Mutex
	result Result
	failed error // error of the lab itself
}

// judgeEvery is the interval of evaluations, judgeLate the time after which events are complete in
// the record.
const (
	judgeEvery = 500 * time.Millisecond
	judgeLate  = 500 * time.Millisecond
)

// Run builds a lab, breaks it as planned, and returns the result. It ends at the first violation,
// after the duration, or when ctx ends. The error is about the lab itself.
func Run(ctx context.Context, cfg *Config, p *Prepared) (*Result, error) {
	r := &run{cfg: cfg, bounds: p.Bounds, spare: p.spare, spareVIP: p.spare.vip.Addresses[0].Addr()}
	if cfg.Progress == nil {
		cfg.Progress = func(time.Duration, string) {}
	}
	spec := &cfg.Cluster.Config.Spec
	r.ingress = ingressOf(spec)
	r.result = Result{Seed: cfg.Seed, Bounds: p.Bounds, Faults: map[Kind]int{}}
	cluster, err := lab.New(ctx, lab.Config{
		Cluster: cfg.Cluster, Plan: p.Plan, Dir: cfg.Dir, Programs: cfg.Programs, BackOff: backOff, Log: cfg.Log,
		Progress: func(what string) { cfg.Progress(0, "building "+what) },
	})
	if err != nil {
		return nil, err
	}
	r.cluster = cluster
	err = r.live(ctx, p)
	if len(r.result.Violations) > 0 {
		r.result.Logs = r.logs()
	}
	err = errors.Join(err, cluster.Close())
	r.checkRemoved()
	return &r.result, err
}

// checkRemoved reports a violation if anything of the lab is left after its end.
func (r *run) checkRemoved() {
	var left []string
	prefix := strings.TrimSuffix(r.cluster.Network().Hub(), "hub")
	for _, pattern := range []string{"/run/netns/" + prefix + "*", "/sys/fs/cgroup/" + prefix + "*", "/sys/fs/cgroup/*/" + prefix + "*", lab.RouterDir(prefix + "*")} {
		found, _ := filepath.Glob(pattern)
		left = append(left, found...)
	}
	if len(left) > 0 {
		at := r.record.now()
		r.violate(Violation{Rule: leak, From: at, To: at, Happened: fmt.Sprintf("after the end there are %v", left)})
	}
}

// live watches and breaks the cluster.
func (r *run) live(ctx context.Context, p *Prepared) (err error) {
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	since := time.Now()
	r.record = &record{since: since}
	r.describe()
	if r.hostile, err = r.cluster.Network().AddNode(r.spare.hostile.Name, r.spare.hostile.Addresses...); err != nil {
		return err
	}
	if r.record.watch, err = r.startWatch(since); err != nil {
		return err
	}
	defer func() {
		_, e := r.record.watch.End()
		err = errors.Join(err, e)
	}()
	if r.files, err = watchFiles(ctx, r); err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer r.stop()
	if r.cluster.Spec().Routed() {
		defer func() { r.routed.end() }()
		if err := r.watchRouted(ctx, since, &background); err != nil {
			return err
		}
	}
	background.Go(func() { watchdog(ctx, since, r.record.stall) })
	background.Go(func() { r.files.run(ctx) })
	background.Go(func() { room(ctx, r.fail) })
	background.Go(func() { r.attend(ctx) })

	r.log("waiting until the cluster is at rest")
	if !r.rest(ctx) {
		return r.err()
	}
	for _, v := range r.record.vips {
		what := wantHeld
		if v.Addr == r.spareVIP {
			what = wantGone
		}
		r.record.want(v.Addr, 0, what)
	}
	began := r.record.now()
	for _, round := range p.Schedule {
		if ctx.Err() != nil || r.record.now()-began >= r.cfg.Duration {
			break
		}
		if !r.round(ctx, round) {
			break
		}
	}
	r.result.Lasted = r.record.now() - began
	return r.err()
}

// err returns the error of the lab.
func (r *run) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// describe records nodes and VIPs, and the nodes without a router.
func (r *run) describe() {
	spec := r.cluster.Spec()
	for i, n := range r.cluster.Nodes() {
		node := node{Name: n.Name, API: n.API != nil, Rack: lab.RackOf(i)}
		for i := range spec.Groups {
			if g := &spec.Groups[i]; spec.Hosts(g, n.Role, nil) {
				node.Groups = append(node.Groups, g.Role)
			}
		}
		r.record.nodes = append(r.record.nodes, node)
		if r.ingress != nil && n.Router(r.ingress.Controller) == nil {
			c := r.noRouter()
			c.Node, c.Why = n.Name, "no router here"
			r.record.begin(c)
		}
	}
	for _, g := range spec.Groups {
		for _, addr := range g.VIPs {
			r.record.vips = append(r.record.vips, vip{Addr: addr, Group: g.Role})
		}
	}
	r.record.vips = append(r.record.vips, vip{Addr: r.spareVIP, Group: v1alpha1.GroupAPI})
}

func (r *run) startWatch(since time.Time) (*watch.Watch, error) {
	cfg := watch.Config{Since: since} // without a capture, whose buffer a flood could overflow
	for _, n := range r.cluster.Nodes() {
		cfg.Nodes = append(cfg.Nodes, n.Node)
	}
	for _, v := range r.record.vips {
		cfg.VIPs = append(cfg.VIPs, v.Addr)
	}
	return watch.Start(cfg)
}

// round executes the faults of a round and waits until the cluster is at rest. It reports whether
// to continue.
func (r *run) round(ctx context.Context, round Round) bool {
	r.log("round %d: %d faults", round.Number, len(round.Faults))
	r.result.Rounds++
	from := r.record.now()
	judging, stop := context.WithCancel(ctx)
	var judged sync.WaitGroup
	judged.Go(func() { r.judge(judging, from) })
	var all sync.WaitGroup
	over := make([]chan struct{}, len(round.Faults))
	began := time.Now()
	for i, f := range round.Faults {
		if !sleep(ctx, time.Until(began.Add(f.At))) {
			break
		}
		over[i] = make(chan struct{})
		all.Go(func() {
			defer close(over[i])
			for before, g := range round.Faults[:i] {
				if f.collides(g) { // which may take longer than planned
					<-over[before]
				}
			}
			r.execute(ctx, f)
		})
	}
	all.Wait()
	ok := ctx.Err() == nil && r.rest(ctx)
	sleep(ctx, judgeLate)
	stop()
	judged.Wait()
	if ok {
		longest, good := r.judgeOnce(from)
		r.result.update(longest)
		ok = good
	}
	r.result.Failovers = r.failovers()
	if r.routed != nil {
		asked, lost := count(r.routed.requests(from))
		r.result.Requests, r.result.Lost = r.result.Requests+asked, r.result.Lost+lost
	}
	r.result.Late = r.record.late(0)
	return ok && ctx.Err() == nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// execute executes a fault and undoes it.
func (r *run) execute(ctx context.Context, f Fault) {
	a := &act{run: r, fault: f, why: f.text(r.names())}
	nodes := r.cluster.Nodes()
	for _, i := range f.Nodes {
		a.nodes = append(a.nodes, nodes[i])
	}
	r.log("%s", a.why)
	began := time.Now()
	back, err := actions[f.Kind](a, ctx)
	switch {
	case errors.Is(err, errNoEffect):
		r.log("%s: %v", a.why, err)
		r.count(f.Kind, true)
	case err != nil && ctx.Err() == nil:
		r.fail(fmt.Errorf("%s: %w", a.why, err))
	default:
		r.count(f.Kind, false)
	}
	if back == nil {
		return
	}
	sleep(ctx, time.Until(began.Add(f.For)))
	if ctx.Err() != nil {
		return // the run ends
	}
	if err := back(ctx); err != nil && ctx.Err() == nil {
		r.fail(fmt.Errorf("undoing %s: %w", a.why, err))
	}
	r.log("over: %s", a.why)
}

func (r *run) names() []string {
	return lists.Map(r.record.nodes, func(n node) string { return n.Name })
}

func (r *run) count(k Kind, nothing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if nothing {
		r.result.Nothing++
		return
	}
	r.result.Faults[k]++
}

// log logs an event.
func (r *run) log(format string, args ...any) {
	at, what := r.record.now(), fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Timeline = append(r.result.Timeline, Moment{at, what})
	r.cfg.Progress(at, what)
}

// fail ends the run with an error of the lab.
func (r *run) fail(err error) {
	r.mu.Lock()
	r.failed = errors.Join(r.failed, err)
	r.mu.Unlock()
	r.stop()
}

// violate ends the run with violations.
func (r *run) violate(v ...Violation) {
	r.mu.Lock()
	r.result.Violations = append(r.result.Violations, v...)
	r.mu.Unlock()
	r.stop()
}

// judge evaluates the history repeatedly, until ctx ends.
func (r *run) judge(ctx context.Context, from time.Duration) {
	for sleep(ctx, judgeEvery) {
		if _, good := r.judgeOnce(from); !good {
			return
		}
	}
}

func (r *run) judgeOnce(from time.Duration) (longest, bool) {
	h := r.record.history(from)
	h.Now -= judgeLate
	if h.Now <= from {
		return longest{}, true
	}
	found, longest := judgeHistory(h, r.bounds)
	if len(found) > 0 {
		r.mu.Lock()
		r.result.history = &h
		r.mu.Unlock()
		r.violate(found...)
	}
	return longest, len(found) == 0
}

// failovers returns the number of times that a node acquired a VIP.
func (r *run) failovers() int {
	if r.routed != nil {
		_, n := r.routed.spans(0)
		return n
	}
	return len(r.record.watch.Timeline().In(watch.Addresses))
}

// logs returns the last lines of every node's logs.
func (r *run) logs() map[string]string {
	out := map[string]string{}
	for _, n := range r.cluster.Nodes() {
		out[n.Name] = n.Logs(logLines)
	}
	if r.routed != nil {
		for _, router := range r.routed.All() {
			out[router.Name] = router.Log()
		}
	}
	return out
}

const logLines = 200
