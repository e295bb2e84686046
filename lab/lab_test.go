package lab

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// newLab builds a lab with stand-ins for API servers.
func newLab(t *testing.T, ctx context.Context, r *render.Cluster, plan *Plan) *Cluster {
	t.Helper()
	return newLabOf(t, ctx, r, plan, programs(t))
}

// newLabOf is newLab with these programs.
func newLabOf(t testing.TB, ctx context.Context, r *render.Cluster, plan *Plan, with Programs) *Cluster {
	t.Helper()
	began := time.Now()
	c, err := New(ctx, Config{
		Cluster: r, Plan: plan, Dir: t.TempDir(), BackOff: backOff,
		Programs: with,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Progress: func(what string) { t.Logf("%5.1fs %s", time.Since(began).Seconds(), what) },
	})
	testkit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes() {
				t.Log(n.Logs(30))
			}
		}
		testkit.Check(t, c.Close())
		if left, _ := filepath.Glob("/run/netns/" + c.Network().Hub() + "*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return c
}

// TestLab builds a lab with stand-ins for API servers and a bootstrap host, and removes holders
// of the API VIP, one after another.
func TestLab(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r, err := Demo()
	testkit.Must(t, err)
	plan, err := NewPlan(r, PlanOptions{Counts: map[string]int{"worker": 1}, Bootstrap: true})
	testkit.Must(t, err)
	c := newLab(t, ctx, r, plan)
	vip := c.VIPs(v1alpha1.GroupAPI)[0]
	// holder waits for one holder of the VIP of each family. The etcd operator announces the
	// bootstrap host's address of one family alone.
	holder := func() (first *Node) {
		t.Helper()
		for i, vip := range c.VIPs(v1alpha1.GroupAPI) {
			n, err := c.Holder(ctx, vip)
			testkit.Must(t, err)
			t.Logf("%5.1fs %v is held by %s", time.Since(began).Seconds(), vip, n.Name)
			if i == 0 {
				first = n
			}
		}
		return first
	}
	// A control-plane node has it first if its keepalived starts first.
	err = Await(ctx, "the bootstrap to hold the VIP", func() (bool, error) {
		now, err := c.Holders(vip)
		return len(now) == 1 && now[0].Role == v1alpha1.RoleBootstrap, err
	})
	testkit.Must(t, err)
	holder()
	testkit.Must(t, c.EndBootstrap(ctx))
	err = Await(ctx, "the bootstrap to give the VIP away", func() (bool, error) {
		has, err := c.Bootstrap().Has(vip)
		return !has, err
	})
	testkit.Must(t, err)
	first := holder()
	testkit.Must(t, first.Kill())
	if second := holder(); second == first {
		t.Errorf("%s is off and holds the VIP", first.Name)
	}
	testkit.Must(t, first.Heal(ctx))
	holder()
}
