package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// holders returns the nodes that have a VIP now.
func (c *cluster) holders(vip netip.Addr) (out []*node) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.On() && n.holds(vip) {
			out = append(out, n)
		}
	}
	return out
}

// holder waits until exactly one node holds the VIP and keeps it.
func (c *cluster) holder(t *testing.T, vip netip.Addr) *node {
	t.Helper()
	var last []*node
	since := time.Now()
	testkit.Await(t, fmt.Sprintf("one holder of %v", vip), func() bool {
		now := c.holders(vip)
		if !slices.Equal(now, last) {
			last, since = now, time.Now()
		}
		return len(now) == 1 && time.Since(since) >= settled
	})
	return last[0]
}

// otherHolder waits until another node is the only holder of the VIP.
func (c *cluster) otherHolder(t *testing.T, vip netip.Addr, than *node) *node {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("%v to leave %s", vip, than.Name), func() bool {
		now := c.holders(vip)
		return len(now) == 1 && now[0] != than
	})
	return c.holder(t, vip)
}

// backup returns a control-plane node that holds no VIP.
func (c *cluster) backup(t *testing.T) *node {
	t.Helper()
	for _, n := range c.masters() {
		if !slices.ContainsFunc(c.vips, n.holds) {
			return n
		}
	}
	t.Fatal("every control-plane node holds a VIP")
	return nil
}

// restarts returns how often containers were restarted.
func (c *cluster) restarts() map[string]int {
	out := map[string]int{}
	for _, n := range c.nodes {
		for _, p := range n.Kubelet.Pods() {
			for _, k := range p.Containers {
				out[n.Name+"/"+p.Name+"/"+k.Name] = k.Status().Restarts
			}
		}
	}
	return out
}

// check asserts the invariants of a cluster without a fault in progress: every VIP has one
// holder, every configuration on disk is accepted by its daemon, and the redirect exists where
// its pod runs.
func (c *cluster) check(t *testing.T) {
	t.Helper()
	var list []string
	for _, vip := range c.vips {
		list = append(list, fmt.Sprintf("%v is held by %s", vip, c.holder(t, vip).Name))
	}
	show(t, "for every VIP: ip address", strings.Join(list, "\n"))
	for _, n := range c.nodes {
		if n.On() {
			n.check(t)
		}
	}
}

func (n *node) check(t *testing.T) {
	t.Helper()
	if n.runs(manifest.Keepalived) {
		n.exec(manifest.Keepalived, "keepalived", "keepalived", "-t", "-f", "/etc/keepalived/keepalived.conf")
	}
	if n.runs(manifest.HAProxy) {
		n.exec(manifest.HAProxy, "haproxy", "haproxy", "-c", "-f", "/etc/haproxy/haproxy.cfg")
	}
	testkit.Await(t, "the redirect on "+n.Name+" to be where its pod is", func() bool {
		out, err := n.Command(t.Context(), "nft", "list", "tables").CombinedOutput()
		return err == nil && strings.Contains(string(out), "table inet vipgen\n") == n.runs(manifest.HAProxy)
	})
}

func (n *node) runs(name string) bool {
	_, err := n.Kubelet.Pod(name)
	return err == nil
}
