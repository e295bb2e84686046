package render

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// previousCluster is rendered from the same input as by the previous version.
func previousCluster(t *testing.T) *Cluster {
	t.Helper()
	c, problems, err := Load(Sources{
		InstallConfig: File{Name: "install-config.yaml", Data: testkit.Previous(t, "install-config.yaml")},
		VIPConfig:     &File{Name: "vipgen.yaml", Data: testkit.Previous(t, "vipgen.yaml")},
	}, Options{})
	if err != nil || problems.Err() != nil {
		t.Fatal(problems, err)
	}
	return c
}

// previousNode is a control-plane node, with all others as peers.
func previousNode(n int, settings v1alpha1.VRRPSettings) *v1alpha1.Node {
	address := func(n int) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.0.2.1%d", n)), netip.MustParseAddr(fmt.Sprintf("2001:db8::1%d", n))}
	}
	own := address(n)
	out := &v1alpha1.Node{Name: fmt.Sprintf("master-%d", n), Role: v1alpha1.RoleMaster, VRRP: &settings, Interfaces: []v1alpha1.Interface{{
		Name: "ens192", DefaultRoute4: true, DefaultRoute6: true, Addresses: []netip.Prefix{netip.PrefixFrom(own[0], 24), netip.PrefixFrom(own[1], 64)},
	}}}
	for i := range 3 {
		if i != n {
			out.Peers = append(out.Peers, v1alpha1.Peer{Name: fmt.Sprintf("master-%d", i), Role: v1alpha1.RoleMaster, Addresses: address(i)})
		}
	}
	return out
}

// The cluster.yaml of the previous version is accepted; and one that is rendered now from the
// same input is the same file, so that agents of the previous version, which refuse unknown
// fields, accept it. New fields are in the file only where the user sets them.
func TestPreviousClusterConfig(t *testing.T) {
	before := testkit.Previous(t, "rendered/vipgen/cluster.yaml")
	_, err := v1alpha1.LoadClusterConfig("cluster.yaml", before)
	testkit.Check(t, err)
	now, err := previousCluster(t).Config.Marshal()
	testkit.Must(t, err)
	testkit.Equal(t, string(before), string(now))
}

// During an update a node's agent may be of another version than its node templates: this one
// executes those of the previous version.
func TestPreviousTemplates(t *testing.T) {
	c := previousCluster(t).Config
	n := previousNode(0, c.Spec.VRRP.Target)
	for _, f := range []struct {
		path, now string
		render    func(string, *v1alpha1.ClusterConfig, *v1alpha1.Node) ([]byte, error)
		differs   bool // the previous version has another template
	}{
		{"keepalived/keepalived.conf.tmpl", keepalived.Template, keepalived.Render, true},
		{"haproxy/haproxy.cfg.tmpl", haproxy.Template, haproxy.Render, true},
		{"coredns/Corefile.tmpl", coredns.Template, coredns.Render, true},
		{"coredns/hosts.tmpl", coredns.HostsTemplate, coredns.RenderHosts, false},
	} {
		before, err := f.render(string(testkit.Previous(t, "rendered/"+f.path)), c, n)
		if err != nil {
			t.Error(err)
			continue
		}
		now, err := f.render(f.now, c, n)
		testkit.Check(t, err)
		if bytes.Equal(before, now) == f.differs {
			t.Errorf("%s: (-before +now)\n%s", f.path, cmp.Diff(string(before), string(now)))
		}
	}
}

// Nodes of two versions receive each other's advertisements, in both directions, with each of
// the VRRP settings that the cluster has over time.
func TestPreviousAdvertisements(t *testing.T) {
	c := previousCluster(t).Config
	for name, settings := range map[string]v1alpha1.VRRPSettings{"start": *c.Spec.VRRP.Start, "target": c.Spec.VRRP.Target} {
		for _, pair := range [][2]int{{0, 1}, {1, 0}} {
			before := instancesOf(t, testkit.Previous(t, fmt.Sprintf("keepalived/master-%d-%s.conf", pair[0], name)))
			conf, err := keepalived.Render(keepalived.Template, c, previousNode(pair[1], settings))
			testkit.Must(t, err)
			now := instancesOf(t, conf)
			if len(before) != 2 || len(now) != 2 {
				t.Fatalf("%s: %d instances before, %d now, want 2", name, len(before), len(now))
			}
			for i := range now {
				if !now[i].Receives(&before[i]) || !before[i].Receives(&now[i]) {
					t.Errorf("%s: master-%d of the version before and master-%d of this one do not receive each other's advertisements: %+v, %+v", name, pair[0], pair[1], before[i], now[i])
				}
			}
		}
	}
}

func instancesOf(t *testing.T, conf []byte) []keepalivedconf.Instance {
	t.Helper()
	c, problems := keepalivedconf.Read(conf)
	testkit.Empty(t, problems)
	return c.Instances
}
