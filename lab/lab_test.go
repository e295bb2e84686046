package lab

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// newLab builds a lab with stand-ins for API servers.
func newLab(t *testing.T, ctx context.Context, r *render.Cluster, plan *Plan) *Cluster {
	t.Helper()
	return newLabOf(t, ctx, r, plan, programs(t))
}

// endBootstrap ends the bootstrap host, and returns when it has given the VIP away.
func (c *Cluster) endBootstrap(t *testing.T, ctx context.Context, vip netip.Addr) {
	t.Helper()
	testkit.Must(t, c.EndBootstrap(ctx))
	testkit.Must(t, Await(ctx, "the bootstrap to give the API VIP away", func() (bool, error) {
		has, err := c.Bootstrap().Has(vip)
		return !has, err
	}))
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
