package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
	"github.com/vipgen/vipgen/templates/manifest"
)

// operator makes the machine config operator report a node as done, or not.
func (c *cluster) operator(n *node, state string) {
	c.t.Helper()
	const p = "machineconfiguration.openshift.io/"
	c.patch("/api/v1/nodes/"+n.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"rendered-1",%q:"rendered-1",%q:%q}}}`, p+"currentConfig", p+"desiredConfig", p+"state", state))
}

// vrrp returns the VRRP settings that the keepalived job of a node publishes.
func (n *node) vrrp() (settings string, s state.Keepalived) {
	n.cluster.t.Helper()
	s, alive := published[state.Keepalived](n)
	if !alive || s.VRRP == nil || !s.Wanted {
		return "", s
	}
	return s.VRRP.String(), s
}

// settings are the VRRP settings of the nodes.
func (c *cluster) settings() (out []string) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.Role == v1alpha1.RoleBootstrap {
			continue
		}
		settings, _ := n.vrrp()
		out = append(out, settings)
	}
	return out
}

func (c *cluster) awaitSettings(want string) {
	c.t.Helper()
	testkit.Await(c.t, "all nodes to elect as "+want, func() bool {
		return !slices.ContainsFunc(c.settings(), func(w string) bool { return w != want })
	})
}

// modeFile writes the user's mode file of nodes; nothing removes it.
func (c *cluster) modeFile(text string, nodes ...*node) {
	c.t.Helper()
	for _, n := range nodes {
		n.write(v1alpha1.UserModeFile, text)
	}
}

// observed holds observations of the API VIP and the ingress VIP during an event.
type observed struct {
	probe   *probe.Probe
	watch   *watch.Watch
	machine *testkit.Stopwatch
}

func (c *cluster) observe() observed {
	c.t.Helper()
	return c.observeAt("/readyz")
}

func (c *cluster) observeAt(path string) observed {
	c.t.Helper()
	since := time.Now()
	p, err := probe.Start(probe.Config{Since: since, Every: probe.LiveEvery, Target: probe.Target{
		URL: "https://" + netip.AddrPortFrom(api, 6443).String() + path, Timeout: 500 * time.Millisecond, Dial: c.Client.DialContext,
	}})
	c.must(err)
	c.t.Cleanup(func() { p.End() })
	ctx, cancel := context.WithTimeout(c.t.Context(), testkit.Patience)
	defer cancel()
	c.must(p.Await(ctx, int(2*time.Second/probe.LiveEvery)))
	return observed{p, c.watchVIPs(since), testkit.StartStopwatch()}
}

// watchVIPs watches the holders of the VIPs. Times are relative to since.
func (c *cluster) watchVIPs(since time.Time) *watch.Watch {
	c.t.Helper()
	var hosts []*netns.Node
	for _, n := range c.nodes {
		hosts = append(hosts, n.Node.Node)
	}
	w, err := watch.Start(watch.Config{Since: since, Network: c.Network(), Nodes: hosts, VIPs: c.vips})
	c.must(err)
	c.t.Cleanup(func() { w.End() })
	return w
}

// settles returns when the client has had answers for three seconds in a row: late effects have
// occurred.
func (o observed) settles(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	testkit.Must(t, o.probe.Await(ctx, int(3*time.Second/probe.LiveEvery)))
}

// ends prints the observations, and compares the longest time without an answer, and the
// longest split brain, with the promised ones.
func (o observed) ends(t *testing.T, what string, mostOutage, mostTwo time.Duration) {
	t.Helper()
	seen := o.probe.End()
	timeline, err := o.watch.End()
	testkit.Check(t, err)
	outage, two := seen.Outage(), timeline.SplitBrain(0)
	lines := fmt.Sprintf("%d requests, %d without an answer; longest time without one %v; split brain for %v", len(seen.Requests), seen.Lost(), outage, two)
	for _, s := range timeline.In(watch.Addresses) {
		lines += fmt.Sprintf("\n%v: %s from %v to %v", s.VIP, s.Node, s.From, s.To)
	}
	show(t, what, lines)
	late := o.machine.End()
	testkit.Promise(t, what+", no answer", outage, mostOutage+neighbour+slack, mostOutage+neighbour+busy, late)
	testkit.Promise(t, what+", split brain", two, mostTwo+slack, mostTwo+busy, late)
}

// migrated makes all nodes migrate by a mode file, under a client's load, and checks the
// client's results: docs/upgrade.md.
func (c *cluster) migrated(t *testing.T, from, to v1alpha1.VRRPSettings) {
	t.Helper()
	o := c.observe()
	c.modeFile(fmt.Sprintf("mode: %s\nprofile: %s\n", to.Mode, to.Profile), c.nodes...)
	c.awaitSettings(to.String())
	for _, vip := range c.vips {
		c.holder(t, vip)
	}
	// A node that did not migrate would show up now.
	o.settles(t)
	interval := func(v v1alpha1.VRRPSettings) time.Duration {
		return time.Duration(v.AdvertIntervalMS) * time.Millisecond
	}
	bound := interval(from) + 3*interval(to)
	o.ends(t, from.String()+" -> "+to.String(), bound, bound)
	for _, n := range c.nodes {
		if _, s := n.vrrp(); s.Migration != nil || s.Migrations.RolledBack != 0 {
			t.Errorf("%s: %+v, %+v", n.Name, s.Migration, s.Migrations)
		}
	}
}

const (
	// slack is the error of the measurement on a quiet machine.
	slack = 150 * time.Millisecond
	// neighbour is how long a client's kernel keeps a neighbour that it has just confirmed,
	// regardless of announcements (Linux, net.ipv4.neigh.*.locktime: 1 s).
	neighbour = time.Second
	// busy is a bound for any load.
	busy = 10 * time.Second
)

// TestMigration migrates a cluster of five nodes between modes and profiles under a client's
// load, with one node not ready, and one that does not migrate.
func TestMigration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	// Real API servers decide what a node may write to its Node.
	c := newClusterOf(t, Config{Cluster: load(t, demo), Plan: planOf(3, 2), RealAPI: true})
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	virtual := v1alpha1.VRRP{Profile: v1alpha1.ProfileVirtual, Mode: v1alpha1.ModeUnicast}.Settings()
	multicast := fast
	multicast.Mode = v1alpha1.ModeMulticast
	classic := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	c.awaitSettings(fast.String())
	for _, n := range c.nodes {
		c.operator(n, "Done")
	}
	at := fast
	to := func(v v1alpha1.VRRPSettings) func(*testing.T) {
		return func(t *testing.T) {
			c.t = t
			c.migrated(t, at, v)
			at = v
		}
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"FastToClassic", to(classic)},
		{"ClassicToFast", to(fast)},
		{"FastToVirtual", func(t *testing.T) { testkit.Variant(t); to(virtual)(t); to(fast)(t) }},
		{"OneReturnsLater", func(t *testing.T) { c.t = t; c.returnsLater(t, fast, multicast); at = multicast }},
		{"BackAgain", to(fast)},
		{"NotReady", func(t *testing.T) { c.t = t; c.notReady(t, fast) }},
		// The others do not understand the holder's adverts, and take over before they roll back.
		{"DoesNotMove", func(t *testing.T) { c.t = t; c.lagging(t, c.holder(t, api), fast, classic, 6*time.Second) }},
	} {
		if !t.Run(step.name, step.run) {
			break
		}
	}
	c.t = t
}

// waiting waits until a node reports a reason to wait.
func (n *node) waiting(reason string) {
	n.cluster.t.Helper()
	testkit.Await(n.cluster.t, n.Name+" to wait for "+reason, func() bool {
		_, s := n.vrrp()
		return s.Migration != nil && strings.Contains(s.Migration.WaitsFor, reason)
	})
}

// One node is not ready, each time for another reason: no node migrates.
func (c *cluster) notReady(t *testing.T, now v1alpha1.VRRPSettings) {
	o := c.observe()
	last, first := c.nodes[len(c.nodes)-1], c.nodes[0]
	c.modeFile("mode: multicast\n", c.nodes[:len(c.nodes)-1]...)
	first.waiting(last.Name + ": it is ready for ")
	last.write(v1alpha1.UserModeFile, "mode: broadcast\n")
	first.waiting(last.Name + ": not ready: ")
	c.operator(last, "Working")
	last.write(v1alpha1.UserModeFile, "mode: multicast\n")
	first.waiting(last.Name + ": its update is not done (state Working)")
	for _, s := range c.settings() {
		testkit.Equal(t, now.String(), s)
	}
	// The migration is cancelled.
	c.modeFile("mode: unicast\n", c.nodes...)
	c.operator(last, "Done")
	testkit.Await(t, "nothing to wait for", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *node) bool { _, s := n.vrrp(); return s.Migration != nil })
	})
	o.ends(t, "one node is not ready", 0, 0)
}

// All have agreed, and a node loses power before the instant: the others migrate without it.
// When it returns it runs their settings, although it ran other ones before.
func (c *cluster) returnsLater(t *testing.T, from, to v1alpha1.VRRPSettings) {
	holder := c.holder(t, api)
	off := c.masters()[0]
	if off.Name == holder.Name {
		off = c.masters()[1]
	}
	c.modeFile(fmt.Sprintf("mode: %s\nprofile: %s\n", to.Mode, to.Profile), c.nodes...)
	c.agreed(t)
	off.powerOff()
	testkit.Await(t, "the others to migrate", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *node) bool { settings, _ := n.vrrp(); return n.Name != off.Name && settings != to.String() })
	})
	for _, vip := range c.vips {
		c.holder(t, vip)
	}
	o := c.observe()
	off.powerOn()
	c.awaitSettings(to.String())
	for _, vip := range c.vips {
		c.holder(t, vip)
	}
	o.settles(t)
	o.ends(t, off.Name+" returns", 0, 0)
}

// agreed waits until all nodes have agreed on an instant.
func (c *cluster) agreed(t *testing.T) {
	t.Helper()
	testkit.Await(t, "all to agree", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *node) bool { _, s := n.vrrp(); return s.Migration == nil || !s.Migration.Agreed })
	})
}

// All have agreed, and the agent of a node stops working before the instant: the others
// migrate, receive advertisements with the previous settings, and roll back.
func (c *cluster) lagging(t *testing.T, broken *node, from, to v1alpha1.VRRPSettings, bound time.Duration) {
	o := c.observe()
	c.modeFile(fmt.Sprintf("mode: %s\nprofile: %s\n", to.Mode, to.Profile), c.nodes...)
	c.agreed(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	c.must(broken.Signal(ctx, manifest.Keepalived, "keepalived", "vipgen-agent", syscall.SIGSTOP))
	back := 0
	testkit.Await(t, "the others on the control plane to migrate and roll back", func() bool {
		back = 0
		for _, n := range c.masters() {
			if settings, s := n.vrrp(); n.Name != broken.Name && s.Migrations.RolledBack > 0 && settings == from.String() {
				back++
			}
		}
		return back == 2
	})
	c.must(broken.Signal(ctx, manifest.Keepalived, "keepalived", "vipgen-agent", syscall.SIGCONT))
	for _, vip := range c.vips {
		if slices.Contains(c.VIPs(v1alpha1.GroupAPI), vip) {
			c.holder(t, vip)
		}
	}
	most := time.Duration(from.AdvertIntervalMS+3*to.AdvertIntervalMS) * time.Millisecond
	o.ends(t, "the agent of "+broken.Name+" does not migrate", most, bound)
}
