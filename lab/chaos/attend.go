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
	// attendEvery is the interval of probes of every agent, and of measurements of every log.
	attendEvery = time.Second
	// logWindow is the shortest time that a log is measured over: starts log much at once.
	logWindow = 10 * time.Second
	// logLimit is the limit of a container's log in bytes per second. The agent limits a daemon's
	// output to 4 KiB per second (agent/supervise, LogLimit), and Go lists all goroutines of an agent
	// that cannot start a thread, about 100 kB.
	logLimit = 20_000
)

// attend probes the agents and measures the logs of all nodes, until ctx ends.
func (r *run) attend(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, n := range r.cluster.Nodes() {
		for name, j := range jobs {
			all.Go(func() { r.probe(ctx, n, name, j) })
		}
		all.Go(func() {
			for sleep(ctx, attendEvery) {
				r.measure(n)
			}
		})
	}
}

// probe probes one agent repeatedly. It is a violation if an agent that runs and was not stopped
// gives no answer for too long.
func (r *run) probe(ctx context.Context, n *lab.Node, name string, j job) {
	if name == "mdns-publisher" {
		name = "mdns" // the agent's name of the job
	}
	since := time.Duration(-1) // time of the first probe without an answer
	for sleep(ctx, attendEvery) {
		began := r.record.now()
		asking, cancel := context.WithTimeout(ctx, attendEvery)
		err := liveness.Ask(asking, filepath.Join(n.Path(v1alpha1.RunDir), name), name)
		cancel()
		if err == nil || !responsive(n, j) {
			since = -1
			continue
		}
		if since < 0 {
			since = began
		}
		allowed := r.bounds.Answer + r.bounds.Slack + r.record.late(since)
		if now := r.record.now(); now-since > allowed && ctx.Err() == nil {
			r.violate(Violation{Rule: agentStuck, From: since, To: now, Allowed: allowed, Nodes: []string{n.Name},
				Happened: fmt.Sprintf("the agent's %s job on %s runs and does not answer: %v", name, n.Name, err)})
			return
		}
	}
}

// responsive reports whether an agent is expected to answer: it has run for long enough to start,
// and no signal has stopped it.
func responsive(n *lab.Node, j job) bool {
	found := false
	for pid := range pids(n, j, j.program()) {
		p, ok := readProcess(pid)
		if p.stopped {
			return false
		}
		found = found || ok && !p.zombie && p.age > start
	}
	return found
}

// measure records the amount that the containers of a node have logged.
func (r *run) measure(n *lab.Node) {
	at := r.record.now()
	for _, p := range n.Kubelet.Pods() {
		for _, c := range p.Containers {
			r.record.log(logged{at, n.Name, c.Name, c.LogSize()})
		}
	}
}

// logFloods reports containers that log too much, each once.
func (j *judge) logFloods() {
	type source struct{ node, container string }
	earlier := map[source][]logged{} // the sample before the window
	found := map[source]bool{}
	for _, l := range j.Logged {
		k := source{l.Node, l.Container}
		list := append(earlier[k], l)
		if n := len(list); n > 1 && l.Bytes < list[n-2].Bytes {
			list = list[n-1:] // the container was replaced
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
			Happened: fmt.Sprintf("container %s on %s logs %.0f bytes a second: %d are allowed", l.Container, l.Node, perSecond, logLimit)})
	}
}
