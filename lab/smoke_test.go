package lab

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// TestSmoke is the live test of `make test`: of three nodes the holder of the API VIP loses
// power, another one is suspended for two seconds meanwhile, and a client has answers again.
// Its duration does not matter.
func TestSmoke(t *testing.T) {
	testkit.Smoke(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*testkit.Patience)
	defer cancel()
	c := newLab(t, ctx, load(t, demo), planOf(3, 0))
	client, err := probe.Start(probe.Config{Every: 100 * time.Millisecond, Target: probe.Target{
		URL: "https://" + api.String() + ":6443/readyz", Timeout: 10 * time.Second, Dial: c.Client.DialContext,
	}})
	testkit.Must(t, err)
	defer client.End()
	testkit.Must(t, client.Await(ctx, 5))

	vip := c.VIPs(v1alpha1.GroupAPI)[0]
	lost, err := c.Holder(ctx, vip)
	testkit.Must(t, err)
	testkit.Must(t, lost.Kill())
	late := c.Nodes()[slices.IndexFunc(c.Nodes(), func(n *Node) bool { return n != lost })]
	_, err = late.Stall(ctx, 2*time.Second, false)
	testkit.Must(t, err)
	testkit.Must(t, Await(ctx, "another node to hold the VIP", func() (bool, error) {
		now, err := c.Holders(vip)
		return len(now) == 1 && now[0] != lost, err
	}))
	testkit.Must(t, client.Await(ctx, 5))
}
