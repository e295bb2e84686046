package lab

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

const (
	// shutdowns is the number of shutdowns of the holder of each kind.
	shutdowns = 3
	// shutdownGap is the time that clients may be without an answer, in the median.
	shutdownGap = 100 * time.Millisecond
	// atOnceGap is the same if every process gets SIGTERM at once: keepalived then removes the
	// VIP itself, before another node has it, and its backups wait as for any holder that sends
	// priority 0.
	atOnceGap = 200 * time.Millisecond
	// drainSeen is the longest time until HAProxy detects that an API server drains:
	// its checks, two of which must fail (docs/concepts.md).
	drainSeen = 800 * time.Millisecond
	// shutdownDelay is the time that the stand-in for an API server continues to serve.
	shutdownDelay = 5 * time.Second
)

// Hard case 43: the holder of the API VIP is shut down, with its API server, which answers
// /readyz with 500 from then on and all else as before. Without kubelet and systemd, the test
// sends their signals to the processes of the node's pods. A client sends a request every 10 ms
// over new connections. Before, a bootstrap host with vipgen's own files holds the VIP, and ends.
func TestHardCase43Shutdown(t *testing.T) {
	testkit.Live(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r, err := Demo()
	testkit.Must(t, err)
	plan, err := NewPlan(r, PlanOptions{Counts: map[string]int{"worker": 1}, Bootstrap: true})
	testkit.Must(t, err)
	c := newLab(t, ctx, r, plan)
	vip := c.VIPs(v1alpha1.GroupAPI)[0]
	// A control-plane node has it first if its keepalived starts first.
	testkit.Must(t, Await(ctx, "the bootstrap to hold the VIP", func() (bool, error) {
		now, err := c.Holders(vip)
		return len(now) == 1 && now[0].Role == v1alpha1.RoleBootstrap, err
	}))
	c.endBootstrap(t, ctx, vip)
	for _, way := range []struct {
		name string
		// all is set if every process of a container gets SIGTERM, and not the first one alone.
		all bool
		gap time.Duration
	}{
		{"KubeletEndsThePods", false, shutdownGap}, // a graceful node shutdown
		{"SystemdEndsTheScopes", true, atOnceGap},
	} {
		t.Run(way.name, func(t *testing.T) {
			var gaps []time.Duration
			var late time.Duration
			for range shutdowns {
				gap, by := shutDown(t, ctx, c, way.all)
				gaps, late = append(gaps, gap), max(late, by)
			}
			slices.Sort(gaps)
			t.Logf("longest times without an answer: %v", gaps)
			testkit.Promise(t, "the median of the longest times without an answer", gaps[len(gaps)/2], way.gap, 10*way.gap, late)
		})
	}
}

// shutDown shuts the holder down, waits for the next one, and powers it on again. It returns
// the longest time between two answers, and how late the machine was meanwhile.
func shutDown(t *testing.T, ctx context.Context, c *Cluster, all bool) (gap, late time.Duration) {
	t.Helper()
	vip := c.VIPs(v1alpha1.GroupAPI)[0]
	awaitWell(t, c)
	n, err := c.Holder(ctx, vip)
	testkit.Must(t, err)
	p, err := probe.Start(probe.Config{Target: probe.Target{
		URL: "https://" + netip.AddrPortFrom(vip, 6443).String() + "/version", Timeout: 10 * time.Second, Dial: c.Client.DialContext,
	}})
	testkit.Must(t, err)
	// Longer than the client's kernel keeps an entry learned by ARP (arp(7), locktime).
	testkit.Must(t, p.Await(ctx, 200))
	watch := testkit.StartStopwatch()
	var ending sync.WaitGroup
	began := p.Now()
	ending.Go(func() { testkit.Check(t, n.API.Stop(ctx)) })
	terminate(t, n, all)
	testkit.Await(t, "another node to hold the VIP", func() bool {
		h, err := c.Holders(vip)
		return err == nil && len(h) == 1 && h[0] != n
	})
	testkit.Must(t, p.Await(ctx, 100))
	late = watch.End()
	result := p.End()
	result.Requests = slices.DeleteFunc(result.Requests, func(q probe.Request) bool { return q.Sent < began-time.Second })
	last := time.Duration(0)
	for _, q := range result.Requests {
		if q.From == n.Name && q.Sent > began {
			last = q.Sent - began
		}
	}
	t.Logf("%s: without an answer for %v; %d of %d requests lost %v; the machine was late by %v", n.Name, result.Gap(), result.Lost(), len(result.Requests), result.Errors(), late)
	testkit.Promise(t, "how long requests reached an API server that drains", last, drainSeen, shutdownDelay, late)
	ending.Wait()
	testkit.Must(t, n.Kill())
	testkit.Must(t, n.Heal(ctx))
	return result.Gap(), late
}

// terminate sends SIGTERM to the first process of each container of the node's pods, or to all
// of them, at once.
func terminate(t *testing.T, n *Node, all bool) {
	t.Helper()
	var list []int
	for _, p := range n.Kubelet.Pods() {
		for _, c := range p.Containers {
			running, err := c.Running()
			testkit.Must(t, err)
			first, err := running.PID()
			testkit.Must(t, err)
			list = append(list, first)
			if !all {
				continue
			}
			processes, err := running.Processes()
			testkit.Must(t, err)
			for _, process := range processes {
				if process.PID != first {
					list = append(list, process.PID)
				}
			}
		}
	}
	for _, pid := range list {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// awaitWell waits until each control-plane node could serve as the holder of the API VIPs.
func awaitWell(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, n := range c.ControlPlane() {
		err := Await(ctx, n.Name+" to be as good a holder as any", func() (bool, error) {
			s, err := Published[state.Keepalived](n)
			less := func(i state.Instance) bool { return i.Priority != 68 }
			return s != nil && s.PID != 0 && len(s.Instances) == 2 && !slices.ContainsFunc(s.Instances, less), err
		})
		testkit.Must(t, err)
	}
}
