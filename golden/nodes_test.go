package golden

import (
	"maps"
	"net/netip"
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
