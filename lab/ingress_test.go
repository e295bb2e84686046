package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// twoControllers is the demo with one control-plane node and three workers.
var twoControllers = strings.NewReplacer("replicas: 3", "replicas: 1", "replicas: 2", "replicas: 3").Replace(demo)

var blueController = vipgenYAML + `  ingress:
  - name: blue
    vips: [192.0.2.7, "2001:db8::7"]
    domains: [blue.example.net]
`

// controller is an ingress controller with its VRRP group, a name below its domain and
// its VIPs.
type controller struct {
	name, group, host string
	vips              []netip.Addr
}

var controllers = []controller{
	{"default", "ingress", "console.apps." + domain, []netip.Addr{ingress, netip.MustParseAddr("2001:db8::6")}},
	{"blue", "ingress-blue", "shop.blue.example.net", []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}},
}

// TestHardCase21IngressControllers runs two ingress controllers on the same pool, moves their routers
// from worker to worker, and sends requests to the VIPs of both: no router ever answers for the
// other controller (hard case 21, seed 003).
func TestHardCase21IngressControllers(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newClusterOf(t, Config{Cluster: loadWith(t, twoControllers, blueController), Plan: planOf(1, 3), RealAPI: true})
	c.check(t)
	c.placed(t, "default blue default")
	for _, n := range c.nodes {
		for _, k := range controllers {
			c.awaitDNS(t, n.Address(), k.host, "A", k.vips[0].String())
			c.awaitDNS(t, n.Address(), k.host, "AAAA", k.vips[1].String())
		}
	}
	clients := map[*vipProbe]controller{}
	for _, k := range controllers {
		for _, vip := range k.vips {
			p := c.asks(t, vip, 20*time.Millisecond, probe.Target{URL: "http://" + netip.AddrPortFrom(vip, 80).String() + "/", Host: k.host, Timeout: time.Second})
			clients[&p] = k
		}
	}

	for _, to := range []string{
		"blue default blue",    // one replaces the other
		"blue default default", // and vice versa
		"blue blue default",
		"default blue default",
		"default - blue",    // one is on no node for a while
		"blue - blue",       // no router of the default controller: no node holds its VIPs
		"blue blue blue",    // all answer, none of the default controller
		"default blue blue", // it returns
		"default - -",       // none of blue
		"default blue default",
	} {
		c.place(t, strings.Fields(to))
		c.placed(t, to)
	}
	for p, k := range clients {
		p.answeredBy(t, k.name)
	}
}

// answeredBy ends the probe, and checks that it had answers, all of routers of a controller.
func (p vipProbe) answeredBy(t *testing.T, controller string) {
	t.Helper()
	r, own := p.End(), 0
	for _, q := range r.Requests {
		switch words := strings.Fields(q.From); { // HOST from router CONTROLLER at NODE
		case q.Err != "":
		case len(words) == 6 && words[3] == controller:
			own++
		default:
			t.Errorf("at %v of %s: answer %q", p.vip, controller, q.From)
		}
	}
	if own == 0 {
		t.Errorf("at %v of %s: no answers", p.vip, controller)
	}
}

// Routers of several controllers need separate nodes.
func TestPlanOfIngressControllers(t *testing.T) {
	for vipgen, want := range map[string]int{vipgenYAML: 2, blueController: 3} {
		plan, err := NewPlan(loadWith(t, twoControllers, vipgen), PlanOptions{})
		testkit.Must(t, err)
		workers := slices.DeleteFunc(plan.Nodes, func(m Machine) bool { return m.Role != v1alpha1.RoleWorker })
		testkit.Equal(testkit.In(t, vipgen), want, len(workers))
	}
}

// placed waits until each VIP is on a worker with its own router, or on no node if there is
// none. layout names the controller of each worker, "-" for none.
func (c *cluster) placed(t *testing.T, layout string) {
	t.Helper()
	for _, k := range controllers {
		own := slices.Contains(strings.Fields(layout), k.name)
		for _, vip := range k.vips {
			if !own {
				testkit.Await(t, fmt.Sprintf("no node to hold %v", vip), func() bool { return len(c.holders(vip)) == 0 })
				continue
			}
			testkit.Await(t, fmt.Sprintf("%v on a worker with a router of %s", vip, k.name), func() bool {
				now := c.holders(vip)
				return len(now) == 1 && now[0].Router(k.name) != nil
			})
		}
	}
}

// place moves routers until each worker has one of the named controller: all that must move are
// removed first, as their ports are the same.
func (c *cluster) place(t *testing.T, layout []string) {
	t.Helper()
	for i, want := range layout {
		n := c.node(fmt.Sprintf("worker-%d", i))
		for _, have := range n.controllers() {
			if have != want {
				n.must(func(ctx context.Context) error { return n.RemoveRouter(ctx, have) })
			}
		}
	}
	for i, want := range layout {
		if n := c.node(fmt.Sprintf("worker-%d", i)); want != "-" && n.Router(want) == nil {
			n.startRouterPod(t, want)
		}
	}
}

// startRouterPod starts a router on a node. A real router takes seconds from its pod to its
// first answer, in which the agent learns of the pod, as soon as kubelet does, and the node
// gives up VIPs of other controllers: the stand-in, which answers at once, waits for that.
func (n *node) startRouterPod(t *testing.T, name string) {
	t.Helper()
	n.must(func(ctx context.Context) error { return n.scheduleRouter(ctx, name) })
	testkit.Await(t, "the agent on "+n.Name+" to know the pod of "+name, func() bool {
		s, alive := published[state.Keepalived](n)
		return alive && !slices.ContainsFunc(controllers, func(k controller) bool {
			fact := slices.IndexFunc(s.Facts, func(f state.Fact) bool { return f.Name == health.RouterOwn(k.group) })
			return fact < 0 || s.Facts[fact].OK != (k.name == name)
		})
	})
	testkit.Await(t, n.Name+" to have given VIPs of others away", func() bool {
		return !slices.ContainsFunc(controllers, func(k controller) bool { return k.name != name && slices.ContainsFunc(k.vips, n.holds) })
	})
	n.must(func(ctx context.Context) error {
		return n.runRouter(ctx, name, v1alpha1.DefaultPorts.RouterHealth)
	})
}
