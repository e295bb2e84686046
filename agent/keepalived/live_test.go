package keepalived

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestElection: there is one holder, a node whose load balancer alone works gets the VIP, and a
// stop hands it over.
func TestElection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	for _, name := range c.all() {
		c.nodes[name].awaitState("it runs", running)
		// The kernel admits a limited number to SCHED_DEADLINE, including those of other tests.
		c.nodes[name].awaitState("it runs ahead of others", func(s state.Keepalived) bool {
			policy := supervise.Scheduling(s.Scheduling)
			return policy == supervise.Deadline || policy == supervise.RoundRobin
		})
	}
	first := c.holder(c.all()...)
	for _, name := range c.all() {
		if out, err := c.nodes[name].probe(); err != nil {
			t.Errorf("probe on %s: %v: %s", name, err, out)
		}
	}

	for _, name := range c.others(first) { // which were probed just now
		c.nodes[name].awaitState("who holds the VIP", func(s state.Keepalived) bool {
			h := s.Instances[0].Holder
			return h != nil && *h == state.Holder{Node: first, Address: c.nodes[first].address.Addr(), Priority: 45}
		})
	}

	best := c.nodes[c.others(first)[0]]
	best.serve(9444)
	firewall := best.dir()
	testkit.Must(t, firewall.Publish(state.Firewall{InPlace: true, VIPs: []netip.Addr{c.vip}}))
	c.holder(best.name)
	s := best.awaitState("the load balancer path counts", func(s state.Keepalived) bool {
		return len(s.Instances) == 1 && s.Instances[0].Holds && s.Instances[0].Terms[0].On
	})
	testkit.Equal(t, 65, s.Instances[0].Priority)
	if err := firewall.Close(); err != nil { // the redirect is part of the path (hard case 6)
		t.Fatal(err)
	}
	best.awaitState("the load balancer path does not count", func(s state.Keepalived) bool { return !s.Instances[0].Terms[0].On })
	c.holder(best.name) // HAProxy still counts, and the other nodes have less

	testkit.Equal(t, 0, best.agent.Stop())
	c.holder(c.others(best.name)...)
	testkit.Empty(t, best.processes())
	if _, alive := best.state(); alive {
		t.Error("the state of an agent that is gone counts")
	}
	if out, err := best.probe(); err == nil {
		t.Errorf("the probe succeeds without an agent: %s", out)
	}
}

// settled is the time without a change after which an election is over.
const settled = time.Second

// holders are the nodes with the VIP, sorted.
func (c *cluster) holders() (out []string) {
	c.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		if len(c.nodes[name].linksWith(c.vip)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// holder waits until one of the nodes holds the VIP alone, after the first checks of all nodes:
// the first result about an API server moves the VIP once more.
func (c *cluster) holder(among ...string) string {
	c.t.Helper()
	last, since := "", time.Now()
	deadline := since.Add(testkit.Patience)
	for {
		now := strings.Join(c.holders(), ",")
		unchecked := slices.DeleteFunc(c.all(), func(name string) bool { return c.nodes[name].checked() })
		if now != last || len(unchecked) > 0 {
			last, since = now, time.Now()
		}
		if slices.Contains(among, last) && time.Since(since) >= settled {
			return last
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no single holder of %v among %v within %v; now: [%s]; unlike their API servers: %v", c.vip, among, testkit.Patience, last, unchecked)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checked reports whether a node in the election of the API VIP has checked its API
// server.
func (n *node) checked() bool {
	n.t.Helper()
	s, alive := n.state()
	if !alive || !running(s) || n.role == "worker" {
		return true
	}
	i := slices.IndexFunc(s.Facts, func(f state.Fact) bool { return f.Name == health.FactAPI })
	if i < 0 {
		return false
	}
	if n.stopping != nil {
		return !s.Facts[i].OK
	}
	if s.Facts[i].OK {
		return true
	}
	conn, err := n.DialContext(n.t.Context(), "tcp", "127.0.0.1:6443")
	if err == nil {
		conn.Close()
	}
	return err != nil // the agent is stopped
}
