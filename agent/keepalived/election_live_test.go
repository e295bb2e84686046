package keepalived

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
