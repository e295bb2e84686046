package golden

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
