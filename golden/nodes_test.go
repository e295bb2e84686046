package golden

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/golden/daemon"
)

// eachNode calls f for every node that has a preview of that file.
func eachNode(t *testing.T, r result, path string, f func(t *testing.T, node string, data []byte)) {
	for _, node := range slices.Sorted(maps.Keys(r.previews)) {
		if data, ok := r.previews[node][path[1:]]; ok {
			t.Run(node, func(t *testing.T) { f(t, node, data) })
		}
	}
}

// checkKeepalived: keepalived -t accepts what each node runs. A node that takes
// no part has a configuration too, in which there is nothing to do.
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

// facts are those that a preview was made with. A preview that was made with
// flags knows what the cluster's own files say of its nodes.
func (c clusterCase) facts(t *testing.T, r result, name string) *v1alpha1.Node {
	t.Helper()
	n := &v1alpha1.Node{}
	for _, flag := range c.nodes(t)[name] {
		if file, ok := strings.CutPrefix(flag, "--facts="); ok {
			if err := yaml.UnmarshalStrict(readFile(t, file), n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if node, ok := strings.CutPrefix(flag, "--node="); ok {
			n.Name = node
		}
	}
	s := r.cluster(t).Spec
	for _, p := range s.Peers {
		if p.Name != n.Name {
			n.Peers = append(n.Peers, p)
			continue
		}
		n.Role, n.Interfaces = p.Role, []v1alpha1.Interface{{}}
		for _, a := range p.Addresses {
			for _, network := range s.MachineNetworks {
				if network.Contains(a) {
					n.Interfaces[0].Addresses = append(n.Interfaces[0].Addresses, withBits(a, network))
				}
			}
		}
	}
	if len(n.Interfaces) == 0 {
		t.Fatalf("the address of %s is not in the install-config or agent-config: write its facts to nodes/%s.yaml", n.Name, name)
	}
	return n
}
