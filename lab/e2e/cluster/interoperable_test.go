package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/reference"
)

// openShiftManaged is the type of a load balancer that the operator sets up on the
// bootstrap host.
const openShiftManaged = "OpenShiftManagedDefault"

// TestHardCase23Interoperable installs a cluster whose bootstrap host runs the operator's own
// keepalived. vipgen's nodes start with its settings, and migrate to the fast profile together
// once it is gone.
func TestHardCase23Interoperable(t *testing.T) {
	c := newCluster(t, openShiftManaged)
	r := newReport(t, "e2e-run-interoperable.md", "A run on real nodes, with the operator's bootstrap host")
	c.install(r, *workers)
	c.checkPods()
	c.checkPlugin()
	c.ways(*c.config(v1alpha1.RoleMaster).Spec.VRRP.Start)
	r.rows = append(r.rows, c.during(c.migrated()), c.during(c.powerLoss()))
}

// config returns the rendered config for nodes of a role.
func (c *cluster) config(role string) *v1alpha1.ClusterConfig {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.rendered, "files", role, v1alpha1.ClusterConfigPath))
	c.must(err)
	config, err := v1alpha1.LoadClusterConfig(v1alpha1.ClusterConfigPath, data)
	c.must(err)
	return config
}

// operatorsImage is an image for the operator's keepalived and its scripts.
const operatorsImage = "localhost/operators-keepalived:1"

// installOperators installs the operator's pods on the bootstrap host: a stand-in,
// see docs/testing.md.
func (n *node) installOperators() {
	c := n.cluster
	c.t.Helper()
	n.bare = true
	facts := &v1alpha1.Node{Name: n.Name, Role: n.role, Interfaces: []v1alpha1.Interface{{
		Name: n.Link, Addresses: []netip.Prefix{netip.PrefixFrom(n.addr, 24)}, DefaultRoute4: true,
	}}}
	for i := range 3 {
		facts.Peers = append(facts.Peers, v1alpha1.Peer{Name: masterName(i), Role: v1alpha1.RoleMaster, Addresses: []netip.Addr{masterAddr(i)}})
	}
	c.must(reference.Install(n.Host, c.config(v1alpha1.RoleMaster), facts, v1alpha1.Images{Keepalived: operatorsImage, HAProxy: operatorsImage}))
	c.images[operatorsImage] = rig.OperatorsArchive(c.t, operatorsImage)
	data, err := n.Read(v1alpha1.ManifestDir + "/keepalived.yaml")
	c.must(err)
	pod := &corev1.Pod{}
	c.must(yaml.UnmarshalStrict(data, pod))
	n.pods, n.control = map[string]*corev1.Pod{pod.Name: pod}, map[string]*corev1.Pod{}
}

// migrated is the migration to the configured profile.
func (c *cluster) migrated() fault {
	vrrp := c.config(v1alpha1.RoleMaster).Spec.VRRP
	return fault{
		name: "all nodes migrate to the fast profile", stays: true,
		what: "The machine config operator, for which the test stands in, is done with every node. The agents agree on an instant and migrate from " + vrrp.Start.String() + " to " + vrrp.Target.String() + " together, by themselves.",
		do: func() {
			for _, n := range c.nodes() {
				const prefix = "machineconfiguration.openshift.io/"
				c.kubectl("annotate", "node", n.Name, prefix+"currentConfig=rendered-1", prefix+"desiredConfig=rendered-1", prefix+"state=Done")
			}
		},
		over: func() { c.ways(vrrp.Target) },
	}
}

// ways waits until every node reports these VRRP settings.
func (c *cluster) ways(want v1alpha1.VRRPSettings) {
	c.t.Helper()
	c.until("all nodes to elect as "+want.String(), func() bool {
		said := c.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.annotations.vipgen\.io/vrrp}{"\n"}{end}`)
		return strings.Count(said, fmt.Sprintf(`"running":%q`, want)) == len(c.nodes())
	})
}
