package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// rollout is a cluster of three control-plane nodes with a sequence of steps, while a client
// sends a request to the API VIP every 10 ms.
type rollout struct {
	*cluster
	exchanged []*exchanged
	seen      observed
	steps     []step
}

// step is one change, and lasts until the next one.
type step struct {
	what string
	// outage bounds the client's time without an answer, splitBrain how long two nodes may hold
	// a VIP.
	outage, splitBrain time.Duration
	from               time.Duration
	machine            *testkit.Stopwatch
}

// threeOf makes the cluster. files are vipgen's on each node.
func threeOf(t *testing.T, images map[string]container.Image, files func(*Node) tree) *rollout {
	t.Helper()
	l := &rollout{cluster: &cluster{t: t, top: t}}
	cfg := Config{Images: images, Log: l.record(), Cluster: load(t, demo), Plan: planOf(3, 0)}
	cfg.Install = func(n *Node) error {
		for name, text := range files(n) {
			if err := n.Write(name, []byte(text)); err != nil {
				return err
			}
		}
		return nil
	}
	l.build(t, cfg)
	l.vips = l.VIPs(v1alpha1.GroupAPI)
	for _, n := range l.nodes {
		l.exchanged = append(l.exchanged, &exchanged{n, files(n.Node)})
	}
	for _, x := range l.exchanged {
		x.settles()
		l.operator(x.node, "Done")
	}
	l.held()
	l.seen = l.observe()
	return l
}

// held returns the node that holds the API VIP, once each VIP has stayed on one node for a
// while.
func (l *rollout) held() *node {
	l.t.Helper()
	var last [][]*node
	since := time.Now()
	testkit.Await(l.t, "one holder of each API VIP", func() bool {
		var now [][]*node
		for _, vip := range l.vips {
			now = append(now, l.holders(vip))
		}
		if !slices.EqualFunc(now, last, slices.Equal) {
			last, since = now, time.Now()
		}
		return !slices.ContainsFunc(now, func(h []*node) bool { return len(h) != 1 }) && time.Since(since) >= settled
	})
	return last[0][0]
}

// step makes one change, and returns when the client has answers again.
func (l *rollout) step(what string, outage, splitBrain time.Duration, do func()) {
	l.t.Helper()
	if n := len(l.steps); n > 0 {
		l.steps[n-1].machine.End()
	}
	l.steps = append(l.steps, step{what, outage, splitBrain, l.seen.probe.Now(), testkit.StartStopwatch()})
	do()
	l.held()
	l.answers(20)
}

// answers waits until the client has had a number of answers in a row.
func (l *rollout) answers(n int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), testkit.Patience)
	defer cancel()
	l.must(l.seen.probe.Await(ctx, n))
}

// end prints the client's results of each step, and compares them with the promised ones.
func (l *rollout) end() {
	l.t.Helper()
	l.answers(100)
	seen := l.seen.probe.End()
	timeline, err := l.seen.watch.End()
	testkit.Check(l.t, err)
	table := "| step | requests | without an answer | longest time without one | split brain |\n|---|---|---|---|---|\n"
	for i, s := range l.steps {
		to := time.Duration(math.MaxInt64)
		if i+1 < len(l.steps) {
			to = l.steps[i+1].from
		}
		part := probe.Result{Requests: slices.DeleteFunc(slices.Clone(seen.Requests), func(q probe.Request) bool { return q.Sent < s.from || q.Sent >= to })}
		var splitBrain time.Duration
		for _, o := range timeline.Overlaps(0) {
			if o.From >= s.from && o.From < to {
				splitBrain = max(splitBrain, o.Length())
			}
		}
		table += fmt.Sprintf("| %s | %d | %d | %v | %v |\n", s.what, len(part.Requests), part.Lost(),
			part.Outage().Round(time.Millisecond), splitBrain.Round(time.Millisecond))
		late := s.machine.End()
		testkit.Promise(l.t, s.what+", no answer", part.Outage(), s.outage+neighbour+slack, s.outage+neighbour+busy, late)
		testkit.Promise(l.t, s.what+", split brain", splitBrain, s.splitBrain+slack, s.splitBrain+busy, late)
	}
	show(l.t, "what a client saw", table)
}

// holderFirst returns the nodes, the holder of the API VIPs first.
func (l *rollout) holderFirst() []*exchanged {
	l.t.Helper()
	h := l.held()
	order := slices.Clone(l.exchanged)
	at := slices.IndexFunc(order, func(x *exchanged) bool { return x.node == h })
	order[0], order[at] = order[at], order[0]
	return order
}

// migrates makes all nodes migrate to other VRRP settings by the user's mode file, which stays.
func (l *rollout) migrates(what string, to v1alpha1.VRRPSettings, outage time.Duration) {
	l.t.Helper()
	l.step(what, outage, outage, func() {
		l.modeFile(fmt.Sprintf("mode: %s\nprofile: %s\n", to.Mode, to.Profile), l.nodes...)
		l.awaitSettings(to.String())
	})
	for _, n := range l.nodes {
		if _, s := n.vrrp(); s.Migrations.RolledBack != 0 {
			l.t.Errorf("%s went back: %+v", n.Name, s.Migrations)
		}
	}
}
