package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// fault is a fault of a cluster under load.
type fault struct {
	name string
	do   func() // returns when the fault is in effect
	over func() // waits for its consequences, in addition to the client's answers
	mend func() // ends it
	// stays is set if the VIP must not move.
	stays bool
	// at is the affected node; no other may become not ready.
	at func() *node
}

// haproxyLate is the delay of a machine that moves the VIP without a fault: two checks of a
// running HAProxy time out (docs/concepts.md).
const haproxyLate = 2 * 100 * time.Millisecond

// during injects a fault into a healthy cluster, ends it, and reports what the clients saw.
func (c *cluster) during(r *report, f fault) {
	c.t.Helper()
	c.log("%s", f.name)
	machine := testkit.StartStopwatch()
	c.t.Cleanup(func() { machine.End() })
	l := c.startLoad(c.vip)
	l.answers()
	f.do()
	l.answers()
	if f.over != nil {
		f.over()
		l.answers()
	}
	if f.mend != nil {
		f.mend()
	}
	c.settle()
	l.answers()
	s := l.end()
	if f.at != nil {
		at := f.at().Name
		s.Unready = slices.DeleteFunc(s.Unready, func(name string) bool { return name == at })
		testkit.Empty(testkit.In(c.t, f.name, at), s.Unready)
	}
	late := machine.End()
	if f.stays && len(s.Holders) != 1 {
		testkit.Explained(c.t, fmt.Sprintf("%s: the VIP was on %v one after the other, and should have stayed", f.name, s.Holders), late, haproxyLate)
	}
	r.add(f.name, s)
}

// settle waits until everything is healthy: every pod, node, API server and load balancer, and
// one holder of each VIP.
func (c *cluster) settle() {
	c.t.Helper()
	for _, n := range c.nodes() {
		n.awaitPods()
	}
	for _, n := range c.masters {
		c.until("the API server of "+n.Name, func() bool { return c.serves(n) })
		c.until("HAProxy of "+n.Name, n.balances)
	}
	c.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	for _, n := range c.workers {
		c.kubectl("wait", "pod", "router-default-"+n.Name, "-n", routerNamespace, "--for=condition=Ready", "--timeout=60s")
	}
	c.etcdLeader()
	c.holder(c.vip)
	if len(c.workers) > 0 {
		c.holder(ingressVIP)
	}
}

// balances reports whether the node's HAProxy forwards requests.
func (n *node) balances() bool {
	ctx, cancel := context.WithTimeout(n.cluster.t.Context(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}}
	return get(ctx, client, "http://127.0.0.1:9444/haproxy_ready") == nil
}

// awaitNotReady waits until the API reports a node as not ready.
func (c *cluster) awaitNotReady(n *node) {
	c.t.Helper()
	c.until(n.Name+" not to be ready any more", func() bool {
		return c.kubectl("get", "node", n.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`) != "True"
	})
}

// processes returns the processes of a container, or only those of a name if one is given.
func (n *node) processes(pod, container, name string) (pids []int) {
	c := n.cluster
	c.t.Helper()
	s := n.Await(c.t, "up", pod, container, rig.Running)
	list, err := n.Processes(rig.ContainerID(s))
	c.must(err)
	for _, p := range list {
		if name == "" || p.Name == name {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) == 0 {
		c.t.Fatalf("%s: no process %s of %s/%s among %+v", n.Name, name, pod, container, list)
	}
	return pids
}
