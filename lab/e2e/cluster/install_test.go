package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// install runs an installation. The client uses the cluster by its VIP as soon as the bootstrap
// host holds it, and its results are the first row of the report.
func (c *cluster) install(r *report, workers int) {
	c.t.Helper()
	c.bootstrap = c.add("bootstrap", v1alpha1.RoleBootstrap, "192.0.2.20")
	for i := range 3 {
		c.masters = append(c.masters, c.add(masterName(i), v1alpha1.RoleMaster, masterAddr(i).String()))
	}
	for i := range workers {
		c.workers = append(c.workers, c.add(fmt.Sprintf("worker-%d", i), v1alpha1.RoleWorker, fmt.Sprintf("192.0.2.3%d", i)))
	}

	c.log("the bootstrap host comes up alone")
	b := c.bootstrap
	first := []*node{b}
	b.startEtcd("new", first)
	b.startAPI(first)
	b.startControllers()
	b.boot()
	c.until("the API server of the bootstrap", func() bool { return c.serves(b) })
	c.prepare()
	b.awaitPods()
	c.until("the bootstrap to hold the VIP", func() bool { return b.has(c.vip) })

	c.log("the client begins to use the VIP; nodes join by it")
	l := c.startLoad(c.vip)
	l.answers()
	for _, n := range c.nodes() {
		n.boot()
	}
	for _, n := range c.nodes() {
		c.until(n.Name+" to register", func() bool {
			return slices.Contains(strings.Fields(c.kubectl("get", "nodes", "-o", "name")), "node/"+n.Name)
		})
		c.label(n)
	}
	members := first
	for _, n := range c.masters {
		c.log("etcd of %s joins", n.Name)
		c.joinEtcd(n, members)
		members = append(members[:len(members):len(members)], n)
	}
	for _, n := range c.masters {
		c.log("the API server of %s starts", n.Name)
		n.startAPI(c.masters)
		n.startControllers()
		c.until("the API server of "+n.Name, func() bool { return c.serves(n) })
	}
	c.startRouters()
	for _, n := range c.nodes() {
		n.awaitPods()
	}
	c.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	if !b.has(c.vip) {
		c.t.Error("the bootstrap does not hold the VIP any more")
	}
	l.answers()
	c.log("all nodes are ready")
	r.add("nodes join", l.end())
	c.handOver(r)
}

func masterName(i int) string { return fmt.Sprintf("master-%d", i) }

func masterAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}) }

// handOver ends the bootstrap host like an installer: its API server first, gracefully.
func (c *cluster) handOver(r *report) {
	b := c.bootstrap
	c.during(r, fault{
		name: "handover",
		do: func() {
			b.endStatic(controllerManager)
			b.endStatic(apiServer)
			c.until("the bootstrap to give the VIP away", func() bool { return !b.has(c.vip) })
		},
		over: func() {
			c.until("the bootstrap's API server to end", func() bool { return !c.serves(b) })
			c.leaveEtcd(b, c.masters)
			c.kubectl("annotate", "configmap", "etcd-endpoints", "-n", "openshift-etcd", bootstrapAnnotation+"-")
			b.powerOff()
			c.bootstrap = nil
		},
	})
}

const bootstrapAnnotation = "alpha.installer.openshift.io/etcd-bootstrap"

// prepare creates the objects of other components, and those that vipgen renders.
func (c *cluster) prepare() {
	c.t.Helper()
	at := c.bootstrap.addr
	c.prepareAt(at)
	c.kubectlUntil(at, "apply", "-f", c.rendered+"/manifests")
	c.kubectlUntil(at, "annotate", "configmap", "etcd-endpoints", "-n", "openshift-etcd", bootstrapAnnotation+"="+at.String())
}

// kubectlUntil repeats a command against an API server until it succeeds.
func (c *cluster) kubectlUntil(at netip.Addr, args ...string) {
	c.t.Helper()
	c.until("kubectl "+strings.Join(args, " "), func() bool {
		_, err := c.kubectlAt(c.t.Context(), at, args...)
		if err != nil {
			c.t.Log(err)
		}
		return err == nil || strings.Contains(err.Error(), "already exists")
	})
}

// prepareAt creates the objects of other components through an API server.
func (c *cluster) prepareAt(at netip.Addr) {
	c.t.Helper()
	for _, name := range []string{podNamespace, "openshift-etcd", routerNamespace} {
		c.kubectlUntil(at, "create", "namespace", name)
	}
	for name, role := range map[string]string{
		"bootstrappers-ask": "system:node-bootstrapper", "bootstrappers-get": "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
	} {
		c.kubectlUntil(at, "create", "clusterrolebinding", name, "--clusterrole="+role, "--group=system:bootstrappers")
	}
	c.kubectlUntil(at, "create", "clusterrolebinding", "nodes-rotate", "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "--group=system:nodes")
	c.kubectlUntil(at, "create", "configmap", "etcd-endpoints", "-n", "openshift-etcd")
}

// label sets the labels of a node's role, which kubelet may not set.
func (c *cluster) label(n *node) {
	c.t.Helper()
	labels := []string{"node-role.kubernetes.io/worker="}
	if n.role == v1alpha1.RoleMaster {
		labels = []string{"node-role.kubernetes.io/master=", "node-role.kubernetes.io/control-plane="}
	}
	c.kubectl(append([]string{"label", "node", n.Name}, labels...)...)
}

// log writes a step to the test's log.
func (c *cluster) log(format string, args ...any) {
	c.t.Helper()
	c.t.Logf(format, args...)
}
