package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/templates/manifest"
)

// act is a fault in progress.
type act struct {
	*run
	fault Fault
	nodes []*lab.Node
	why   string
}

// undo ends a fault; nil if it ends by itself.
type undo func(context.Context) error

// errNoEffect is returned if a fault found no target.
var errNoEffect = errors.New("nothing there")

// actions holds the function of each kind of fault.
var actions = map[Kind]func(*act, context.Context) (undo, error){
	power:            (*act).power,
	link:             (*act).link,
	flap:             (*act).flap,
	killKeepalived:   (*act).killKeepalived,
	freezeKeepalived: (*act).freezeKeepalived,
	killWorker:       (*act).killWorker,
	killMaster:       (*act).killMaster,
	freezeHAProxy:    (*act).freezeHAProxy,
	allHAProxies:     (*act).freezeHAProxy,
	killAgent:        (*act).killAgent,
	freezeAgent:      (*act).freezeAgent,
	stopContainer:    (*act).stopContainer,
	killContainer:    (*act).killContainer,
	killAPI:          (*act).killAPI,
	allAPIs:          (*act).killAPI,
	stopAPI:          (*act).stopAPI,
	freezeAPI:        (*act).freezeAPI,
	stopMCS:          (*act).stopMCS,
	stopRouter:       (*act).stopRouter,
	routerNotReady:   (*act).routerNotReady,
	moveRouter:       (*act).moveRouter,
	partition:        (*act).partition,
	flush:            (*act).flush,
	staleVIP:         (*act).staleVIP,
	removeManifest:   (*act).removeManifest,
	timing:           (*act).timing,
	dns:              (*act).dns,
	changeVIP:        (*act).changeVIP,
	badConfig:        (*act).badConfig,
	renumber:         (*act).renumber,
	load:             (*act).load,
	vrrpFlood:        (*act).vrrpFlood,
	mdnsFlood:        (*act).mdnsFlood,
	oddNode:          (*act).oddNode,
	deletedNode:      (*act).deletedNode,
	crashLoop:        (*act).crashLoop,
	oddLink:          (*act).oddLink,
	deletedApart:     (*act).deletedApart,
	crowd:            (*act).crowd,
	halfAPI:          (*act).halfAPI,
	fullEtcd:         (*act).fullEtcd,
	readOnly:         (*act).readOnly,
	fullRun:          (*act).fullRun,
	noProcesses:      (*act).noProcesses,
	oddEvents:        (*act).oddEvents,
	spoof:            (*act).spoof,
	killDaemon:       (*act).killDaemon,
	resetSessions:    (*act).resetSessions,
	reloadRouter:     (*act).reloadRouter,
	dropBFD:          (*act).dropBFD,
	floodRoutes:      (*act).floodRoutes,
}

// node returns the only node of the fault.
func (a *act) node() *lab.Node { return a.nodes[0] }

// begin records a condition of a node.
func (a *act) begin(n *lab.Node, c condition) *mark {
	c.Node, c.Why = n.Name, a.why
	return a.record.begin(c)
}

// between records a condition that holds after do; while do runs, the node's ability is unsure.
func (a *act) between(n *lab.Node, c condition, do func() error) (*mark, error) {
	doing := a.begin(n, condition{Effect: effectUnsure})
	err := do()
	m := a.begin(n, c)
	doing.end(0)
	return m, err
}

// recover does what ends a condition, waits until the jobs of the condition run again, and allows
// the node the time settle to notice.
func (a *act) recover(ctx context.Context, m *mark, group v1alpha1.GroupRole, settle time.Duration, do ...func() error) (err error) {
	doing := a.record.begin(condition{Node: m.condition.Node, Effect: effectUnsure, Group: group, Why: a.why})
	m.end(0)
	for _, f := range do {
		if err == nil {
			err = f()
		}
	}
	doing.end(a.settle(settle))
	return err
}

// settle returns a time to recover in, with the slack for a busy machine.
func (r *run) settle(d time.Duration) time.Duration { return d + r.bounds.Slack }

// each does the same on all nodes of the fault and returns one undo for all.
func (a *act) each(ctx context.Context, do func(*lab.Node) (undo, error)) (undo, error) {
	undos, errs := make([]undo, len(a.nodes)), make([]error, len(a.nodes))
	together(len(a.nodes), func(i int) { undos[i], errs[i] = do(a.nodes[i]) })
	return func(ctx context.Context) error {
		errs := make([]error, len(undos))
		together(len(undos), func(i int) {
			if undos[i] != nil {
				errs[i] = undos[i](ctx)
			}
		})
		return errors.Join(errs...)
	}, errors.Join(errs...)
}

func together(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// job names the pod, the container and the daemon of an agent's job; no daemon if the agent itself
// does the work.
type job struct{ pod, container, daemon string }

var jobs = map[string]job{
	"keepalived":     {manifest.Keepalived, "keepalived", "keepalived"},
	"haproxy":        {manifest.HAProxy, "haproxy", "haproxy"},
	"bgp":            {manifest.BGP, "bgp", ""},
	"firewall":       {manifest.HAProxy, "firewall", ""},
	"coredns":        {manifest.CoreDNS, "coredns", "coredns"},
	"mdns-publisher": {manifest.MDNS, "mdns-publisher", ""},
}

// agent is the program of jobs, speaker that of the job that announces VIPs.
const (
	agent   = "vipgen-agent"
	speaker = "vipgen-bgp"
)

// program returns the program of a job.
func (j job) program() string {
	if j.pod == manifest.BGP {
		return speaker
	}
	return agent
}

// pids returns the processes of a name in a container, with their parents; none while it does not
// run.
func pids(n *lab.Node, j job, name string) map[int]int {
	out := map[int]int{}
	c, err := n.Kubelet.Container(j.pod, j.container)
	if err != nil || !c.Status().Running {
		return out
	}
	running, err := c.Running()
	if err != nil {
		return out
	}
	list, err := running.Processes()
	if err != nil {
		return out
	}
	for _, p := range list {
		if p.Name == name {
			if q, ok := readProcess(p.PID); ok {
				out[p.PID] = q.parent
			}
		}
	}
	return out
}

// signal sends a signal to processes.
func signal(list map[int]int, s syscall.Signal) error {
	if len(list) == 0 {
		return errNoEffect
	}
	var err error
	for pid := range list {
		if e := syscall.Kill(pid, s); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// pollEvery is the poll interval while waiting for a restart.
const pollEvery = 100 * time.Millisecond

// awaitRestart waits until a job and its daemon run again, as other processes than before. It is a
// violation if that takes too long.
func (a *act) awaitRestart(ctx context.Context, n *lab.Node, j job, were map[int]int) error {
	began := a.record.now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if a.runs(n, j, were) {
			return nil
		}
		allowed := a.bounds.Return + a.bounds.Slack + a.record.late(began)
		if now := a.record.now(); now-began > allowed {
			a.violate(Violation{Rule: noReturn, From: began, To: now, Allowed: allowed, Nodes: []string{n.Name},
				Happened: fmt.Sprintf("container %s of pod %s on %s does not run again, with all that it runs", j.container, j.pod, n.Name)})
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// runs reports whether a job and its daemon run, as other processes than before.
func (a *act) runs(n *lab.Node, j job, were map[int]int) bool {
	name := j.daemon
	if name == "" {
		name = j.program()
	}
	now := pids(n, j, name)
	for pid := range were {
		if _, still := now[pid]; still {
			return false
		}
	}
	want := 1
	if name == "keepalived" || name == "haproxy" { // and its child
		want = 2
	}
	return len(now) >= want
}
