package golden

import (
	"bytes"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// eachNode calls f for every node that has a preview of that file.
func eachNode(t *testing.T, r result, path string, f func(t *testing.T, node string, data []byte)) {
	for _, node := range slices.Sorted(maps.Keys(r.previews)) {
		if data, ok := r.previews[node][path[1:]]; ok {
			t.Run(node, func(t *testing.T) { f(t, node, data) })
		}
	}
}

// checkKeepalived: keepalived -t accepts the configuration of each node. A node that takes no
// part has one without instances.
func checkKeepalived(t *testing.T, r result) {
	eachNode(t, r, v1alpha1.KeepalivedConf, func(t *testing.T, _ string, conf []byte) {
		daemon.Keepalived(t, conf)
	})
}

func checkHAProxy(t *testing.T, r result) {
	eachNode(t, r, v1alpha1.HAProxyConf, func(t *testing.T, _ string, cfg []byte) {
		daemon.HAProxy(t, cfg)
	})
}

// facts returns the facts of a preview. A preview by flags takes its nodes from the cluster's
// own files.
func (c clusterCase) facts(t *testing.T, r result, name string) *v1alpha1.Node {
	t.Helper()
	n := &v1alpha1.Node{Interfaces: []v1alpha1.Interface{{}}}
	own := &n.Interfaces[0].Addresses
	for _, f := range c.nodes(t)[name] {
		switch flag, value, _ := strings.Cut(f, "="); flag {
		case "--facts":
			n = &v1alpha1.Node{}
			testkit.Must(t, yaml.UnmarshalStrict(testkit.ReadFile(t, value), n))
			return n
		case "--node":
			n.Name = value
		case "--role":
			n.Role = value
		case "--interface":
			n.Interfaces[0].Name = value
		case "--address":
			*own = append(*own, netip.MustParsePrefix(value))
		}
	}
	s := r.cluster(t).Spec
	for _, p := range s.Peers {
		switch {
		case p.Name == n.Name:
			n.Role = p.Role
			*own = append(*own, s.WithNetworks(p.Addresses)...)
		case p.Role == v1alpha1.RoleBootstrap || !slices.ContainsFunc(*own, func(o netip.Prefix) bool { return slices.Contains(p.Addresses, o.Addr()) }):
			n.Peers = append(n.Peers, p)
		}
	}
	if len(*own) == 0 {
		t.Fatalf("nothing gives the address of %s", n.Name)
	}
	return n
}

// verbatim are the files that are shipped unchanged: their destinations without the leading
// slash, and their paths in the source tree.
var verbatim = map[string]string{
	"etc/NetworkManager/conf.d/99-vipgen.conf":                            "assets/networkmanager.conf",
	"etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl": "templates/keepalived/keepalived.conf.tmpl",
	"etc/kubernetes/static-pod-resources/haproxy/haproxy.cfg.tmpl":        "templates/haproxy/haproxy.cfg.tmpl",
	"etc/kubernetes/static-pod-resources/coredns/Corefile.tmpl":           "templates/coredns/Corefile.tmpl",
	"etc/kubernetes/static-pod-resources/coredns/hosts.tmpl":              "templates/coredns/hosts.tmpl",
}

// checkVerbatim: every pool has exactly the templates of its daemons, with the bytes of the
// source tree.
func checkVerbatim(t *testing.T, r result) {
	spec := r.cluster(t).Spec
	inCluster, everywhere := spec.LoadBalancer == v1alpha1.LoadBalancerInCluster, spec.APIServer.Local == v1alpha1.LocalAPIAllNodes
	for _, pool := range r.pools() {
		balances := inCluster && (pool == v1alpha1.RoleMaster || pool == v1alpha1.RoleArbiter || everywhere && pool != v1alpha1.RoleBootstrap)
		for _, path := range slices.Sorted(maps.Keys(verbatim)) {
			wanted := true
			switch filepath.Base(path) {
			case "keepalived.conf.tmpl":
				wanted = spec.ByVRRP()
			case "haproxy.cfg.tmpl":
				wanted = balances
			}
			got, ok := r.rendered["files/"+pool+"/"+path]
			testkit.Equal(testkit.In(t, pool, path), wanted, ok)
			if ok && !bytes.Equal(got, testkit.ReadFile(t, filepath.Join("..", verbatim[path]))) {
				t.Errorf("pool %s: %s is not %s", pool, path, verbatim[path])
			}
		}
	}
}

// proved holds the cases whose proofs and explanations are kept, in verified/: with and without
// OpenShift's own keepalived at the start, with two families on one port, with more API VIPs,
// with several ingress controllers, and by BGP. `make test` proves these alone.
var proved = map[string]bool{"baremetal-usermanaged": true, "openstack-dual-stack": true, "additional-api-vips": true, "bgp-racks": true, "ingress-controllers": true}

// TestVerify proves for every case that the VIPs are on the right nodes.
func TestVerify(t *testing.T) {
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if !proved[c.name] {
				testkit.Long(t)
			}
			t.Parallel()
			for _, command := range [][]string{{"verify"}, {"explain"}, {"explain", "--all"}} {
				name := strings.Join(command, "")
				out, report := vipgen(t, c.args(t, command[0], command[1:]...)...) // fails unless the exit code is 0
				if len(out) == 0 {
					t.Errorf("%s prints nothing\n%s", name, report)
				}
				if proved[c.name] {
					checkTold(t, filepath.Join("verified", c.name+"."+name+".txt"), out)
				}
			}
		})
	}
}

// checkTold compares an output with the kept one, or updates it.
func checkTold(t *testing.T, path string, got []byte) {
	t.Helper()
	testkit.Kept(t, path, got, *update)
}
