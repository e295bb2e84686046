package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// TestInstall has the nodes of a cluster come up as an installer has them: kubelets
// register by the VIP that the bootstrap host holds, which then goes. Its holder loses
// power later.
func TestInstall(t *testing.T) {
	c := newCluster(t)
	bootstrap := c.add("bootstrap", v1alpha1.RoleBootstrap, "192.0.2.20")
	masters := []*clusterNode{c.add("master-0", v1alpha1.RoleMaster, "192.0.2.10"), c.add("master-1", v1alpha1.RoleMaster, "192.0.2.11")}
	nodes := append(slices.Clone(masters), c.add("worker-0", v1alpha1.RoleWorker, "192.0.2.30"))

	bootstrap.startAPI()
	bootstrap.prepareCluster()
	bootstrap.announce()
	bootstrap.boot()
	bootstrap.awaitPods()
	bootstrap.checkVIP(t)

	for _, n := range nodes {
		n.boot()
	}
	for _, n := range nodes {
		eventually(t, n.Name+" to register", func() bool {
			return slices.Contains(strings.Fields(bootstrap.kubectl("get", "nodes", "-o", "name")), "node/"+n.Name)
		})
		bootstrap.label(n)
	}
	for _, n := range nodes {
		n.awaitPods()
	}
	bootstrap.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout", patience.String())
	if !bootstrap.holdsVIP() {
		t.Error("the bootstrap does not hold the VIP any more")
	}

	bootstrap.leave(masters[0])
	holder, other := holders(t, masters)
	worker := nodes[len(nodes)-1]
	other.renews(t, worker)
	if err := holder.PowerOff(); err != nil {
		t.Fatal(err)
	}
	other.checkVIP(t)
	other.renews(t, worker)

	if err := holder.PowerOn(); err != nil {
		t.Fatal(err)
	}
	holder.boot()
	holder.awaitPods()
	other.renews(t, holder)
}

// announce says where the bootstrap is, as the etcd operator does.
func (n *clusterNode) announce() {
	n.cluster.t.Helper()
	n.kubectl("create", "configmap", "etcd-endpoints", "-n", "openshift-etcd")
	n.kubectl("annotate", "configmap", "etcd-endpoints", "-n", "openshift-etcd", "alpha.installer.openshift.io/etcd-bootstrap="+n.addr.String())
}

// label gives a node's object the labels of its role. Kubelet may not.
func (n *clusterNode) label(of *clusterNode) {
	n.cluster.t.Helper()
	labels := []string{"node-role.kubernetes.io/worker="}
	if of.role == v1alpha1.RoleMaster {
		labels = []string{"node-role.kubernetes.io/master=", "node-role.kubernetes.io/control-plane="}
	}
	n.kubectl(append([]string{"label", "node", of.Name}, labels...)...)
}

// leave ends a bootstrap host: its API server first, properly, and when it holds the
// VIP no longer its power.
func (n *clusterNode) leave(remaining *clusterNode) {
	c := n.cluster
	c.t.Helper()
	remaining.kubectl("annotate", "configmap", "etcd-endpoints", "-n", "openshift-etcd", "alpha.installer.openshift.io/etcd-bootstrap-")
	c.patiently(n.server.Stop)
	eventually(c.t, "the bootstrap to give the VIP away", func() bool { return !n.holdsVIP() })
	c.must(n.PowerOff())
}

// holders tells the one of two nodes that comes to hold the VIP from the other.
func holders(t *testing.T, nodes []*clusterNode) (holder, other *clusterNode) {
	t.Helper()
	eventually(t, "one holder of the VIP", func() bool {
		holder, other = nodes[0], nodes[1]
		if !holder.holdsVIP() {
			holder, other = other, holder
		}
		return holder.holdsVIP() && !other.holdsVIP()
	})
	return holder, other
}

// renews waits until a node's kubelet has reached the API again.
func (n *clusterNode) renews(t *testing.T, of *clusterNode) {
	t.Helper()
	lease := func() string {
		return n.kubectl("get", "lease", "-n", "kube-node-lease", of.Name, "-o", "jsonpath={.spec.renewTime}")
	}
	before := lease()
	eventually(t, "the kubelet of "+of.Name+" to renew its lease", func() bool { return lease() != before })
}
