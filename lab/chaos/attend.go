package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/lab"
)

const (
	// attendEvery is how often every agent is asked whether it goes on, and how much
	// every container has logged.
	attendEvery = time.Second
	// logWindow is the shortest time that a log is measured over: what starts says much
	// at once.
	logWindow = 10 * time.Second
	// logLimit is how much a container may log, in bytes a second over that time. What
	// a daemon says goes on at 4 KiB a second at most (agent/supervise, LogLimit).
	logLimit = 10_000
)

// attend looks after the agents and the logs of all nodes, until ctx ends.
func (r *run) attend(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, n := range r.cluster.Nodes() {
		for name, j := range jobs {
			all.Go(func() { r.ask(ctx, n, name, j) })
		}
		all.Go(func() {
			for sleep(ctx, attendEvery) {
				r.measure(n)
			}
		})
	}
}

// ask asks one agent again and again. It is a violation if there is one that runs, that
// nobody has stopped, and that gives no answer for too long.
func (r *run) ask(ctx context.Context, n *lab.Node, name string, j job) {
	if name == "mdns-publisher" {
		name = "mdns" // as the agent has it
	}
	since := time.Duration(-1) // when it gave no answer first
	for sleep(ctx, attendEvery) {
		began := r.record.now()
		asking, cancel := context.WithTimeout(ctx, attendEvery)
		err := liveness.Ask(asking, filepath.Join(n.Path(v1alpha1.RunDir), name), name)
		cancel()
		if err == nil || !goesOn(n, j) {
			since = -1
			continue
		}
		if since < 0 {
			since = began
		}
		allowed := r.bounds.Answer + r.bounds.Slack + r.record.late(since)
		if now := r.record.now(); now-since > allowed && ctx.Err() == nil {
			r.violate(Violation{Rule: agentStuck, From: since, To: now, Allowed: allowed, Nodes: []string{n.Name},
				Happened: fmt.Sprintf("the agent's %s job on %s runs and does not go on: %v", name, n.Name, err)})
			return
		}
	}
}

// goesOn says whether the agent of a job runs, as long as it takes to begin, and not
// because of a signal that stops it.
func goesOn(n *lab.Node, j job) bool {
	found := false
	for pid := range pids(n, j, agent) {
		p, ok := readProcess(pid)
		if p.stopped {
			return false
		}
		found = found || ok && !p.zombie && p.age > start
	}
	return found
}

// measure notes how much the containers of a node have logged.
func (r *run) measure(n *lab.Node) {
	at := r.record.now()
	for _, p := range n.Kubelet.Pods() {
		for _, c := range p.Containers {
			r.record.log(logged{at, n.Name, c.Name, c.LogSize()})
		}
	}
}

// logFloods finds containers that log too much, each once.
func (j *judge) logFloods() {
	type source struct{ node, container string }
	earlier := map[source][]logged{} // of a window, and the one before it
	found := map[source]bool{}
	for _, l := range j.Logged {
		k := source{l.Node, l.Container}
		list := append(earlier[k], l)
		if n := len(list); n > 1 && l.Bytes < list[n-2].Bytes {
			list = list[n-1:] // it is another one
		}
		for len(list) > 1 && l.At-list[1].At >= logWindow {
			list = list[1:]
		}
		earlier[k] = list
		length, logged := l.At-list[0].At, l.Bytes-list[0].Bytes
		perSecond := float64(logged) / max(length, logWindow).Seconds()
		if perSecond <= logLimit || l.At > j.Now || found[k] {
			continue
		}
		found[k] = true
		j.found = append(j.found, Violation{Rule: logFlood, From: list[0].At, To: l.At, Nodes: []string{l.Node},
			Happened: fmt.Sprintf("container %s on %s logs %.0f bytes a second, and %d are allowed", l.Container, l.Node, perSecond, logLimit)})
	}
}
