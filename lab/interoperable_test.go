package lab

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/reference"
	"github.com/vipgen/vipgen/render"
)

// managed is the demo with the operator's load balancer.
var managed = strings.Replace(demo, "    loadBalancer:\n      type: UserManaged\n", "", 1)

// operatorsChecks is how long the API VIP may be without an answer when the bootstrap host,
// with everything of the operator, ends: its API server ends, five checks, a second and a
// request apart, fail, keepalived is reloaded, and the others miss three advertisements.
const operatorsChecks = 15 * time.Second

// Hard case 23: a bootstrap host with the operator's own keepalived, and nodes with vipgen's,
// which start with its settings. The bootstrap host ends, the operator is done, and the cluster
// migrates without a command.
func TestHardCase23Migration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := &cluster{t: t, top: t}
	log := c.record()
	rendered := load(t, managed)
	plan := planOf(3, 1, machine("bootstrap", v1alpha1.RoleBootstrap, 9))
	c.build(t, Config{Cluster: rendered, Plan: plan, Log: log, Install: func(n *Node) error {
		if n.Role != v1alpha1.RoleBootstrap {
			return n.installRendered()
		}
		return installOperators(n, rendered, plan, log)
	}})
	fast, classic := rendered.Config.Spec.VRRP.Target, *rendered.Config.Spec.VRRP.Start
	c.awaitSettings(classic.String())
	// A control-plane node has it first if its keepalived starts first.
	testkit.Await(t, "the bootstrap to hold the API VIP", func() bool { return c.holder(t, api).Role == v1alpha1.RoleBootstrap })
	master := c.masters()[0]
	for _, n := range c.nodes {
		if n.Role != v1alpha1.RoleBootstrap {
			c.operator(n, "Done")
		}
	}
	master.waiting("the bootstrap, 192.0.2.9, is still there")
	// No node migrates while the bootstrap's end is measured.
	c.operator(master, "Working")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	// The operator's keepalived on the bootstrap host continues for five checks after its API
	// server, a second apart, so that no host answers meanwhile: as without vipgen.
	o := c.observe()
	c.endBootstrap(t, ctx, api)
	testkit.Equal(t, v1alpha1.RoleMaster, c.holder(t, api).Role)
	o.ends(t, "the bootstrap leaves", operatorsChecks, 0)
	o = c.observe()
	for _, s := range c.settings() {
		if s != classic.String() {
			t.Fatalf("a node has the settings %s already", s)
		}
	}
	c.operator(master, "Done")
	c.awaitSettings(fast.String())
	for _, vip := range c.vips {
		c.holder(t, vip)
	}
	o.settles(t)
	const bound = 1120 * time.Millisecond
	o.ends(t, "the cluster migrates by itself", bound, bound)
}

// installOperators installs the operator's pods on the bootstrap host.
func installOperators(n *Node, c *render.Cluster, plan *Plan, log *slog.Logger) error {
	facts := &v1alpha1.Node{Name: n.Name, Role: n.Role, Interfaces: []v1alpha1.Interface{{Name: n.Link, Addresses: n.OwnAddresses(), DefaultRoute4: true}}}
	for _, m := range plan.Nodes {
		if m.Name == n.Name {
			continue
		}
		p := v1alpha1.Peer{Name: m.Name, Role: m.Role}
		for _, a := range m.Addresses {
			p.Addresses = append(p.Addresses, a.Addr())
		}
		facts.Peers = append(facts.Peers, p)
	}
	log.Info("the operator's own keepalived", "node", n.Name, "peers", len(facts.Peers))
	return reference.Install(n.Host, c.Config, facts, c.Images)
}
