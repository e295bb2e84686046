package render_test

import (
	_ "embed"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

var (
	//go:embed testdata/baremetal.yaml
	baremetalConfig string
	//go:embed testdata/none.yaml
	noneConfig string
	//go:embed testdata/vipgen.yaml
	fullVIPConfig string
	//go:embed testdata/agent-config.yaml
	agentConfig string
)

// Characters of rendered daemon configurations. None of them lets a value end its line or start
// other syntax: there are no backticks, no dollar except at the end of a pattern, and template
// delimiters only around the question's name.
var (
	inertConf     = regexp.MustCompile(`^[A-Za-z0-9 \n#{}()\[\].,:;/@_'"-]*$`)
	inertCorefile = regexp.MustCompile(`^[A-Za-z0-9 \n#{}()\[\].,:;/@_'"*^+\\-]*$`)
)

func checkInert(t *testing.T, f render.OutputFile) {
	t.Helper()
	text := string(f.Data)
	allowed := inertConf
	switch f.Path {
	case v1alpha1.HAProxyConf:
		text = strings.ReplaceAll(text, " x-server %[srv_name]\n", "\n") // the shipped template's own
	case v1alpha1.Corefile:
		allowed = inertCorefile
		text = strings.ReplaceAll(text, "$\n", "\n")
		text = strings.ReplaceAll(text, `"{{ .Name }} `, `"`)
		text = strings.ReplaceAll(text, "%", "") // zones of upstreams
	}
	if !allowed.MatchString(text) || strings.Contains(text, "{{") {
		t.Errorf("%s is not inert:\n%s", f.Path, f.Data)
	}
}

// nodeOf returns a node of a cluster with an address in every machine network, and a peer that
// can take over.
func nodeOf(c *v1alpha1.ClusterConfig, role string) *v1alpha1.Node {
	iface := v1alpha1.Interface{Name: "br-ex", DefaultRoute4: true, DefaultRoute6: true}
	peer := v1alpha1.Peer{Name: "peer", Role: role}
	for _, n := range c.Spec.MachineNetworks {
		own := n.Masked().Addr().Next()
		iface.Addresses = append(iface.Addresses, netip.PrefixFrom(own, n.Bits()))
		peer.Addresses = append(peer.Addresses, own.Next())
	}
	return &v1alpha1.Node{Name: "node", Role: role, Interfaces: []v1alpha1.Interface{iface}, Peers: append([]v1alpha1.Peer{peer}, c.Spec.Peers...)}
}

func checkPreview(t *testing.T, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) {
	t.Helper()
	files, err := render.Preview(c, n)
	testkit.Must(testkit.In(t, n.Role), err)
	for _, f := range files {
		checkInert(t, f)
	}
}

// checkCluster: accepted input renders, and nodes accept the result.
func checkCluster(t *testing.T, c *render.Cluster) {
	t.Helper()
	if _, err := c.Stream(render.Want{}); err != nil {
		t.Fatalf("stream: %v", err)
	}
	bundles, err := c.Bundles()
	testkit.Must(t, err)
	for _, b := range bundles {
		for _, f := range b.Files {
			if f.Path != v1alpha1.ClusterConfigPath {
				continue
			}
			if _, err := v1alpha1.LoadClusterConfig(f.Path, f.Contents); err != nil {
				t.Fatalf("nodes refuse cluster.yaml: %v\n%s", err, f.Contents)
			}
		}
		checkPreview(t, c.Config, nodeOf(c.Config, b.Role))
	}
}

// checkReport: every problem is one printable line.
func checkReport(t *testing.T, c *render.Cluster, list problem.List, err error) {
	t.Helper()
	if (c == nil) != (err != nil) || (err != nil) != (list.Err() != nil) {
		t.Fatalf("cluster %t, error %v, report %v", c != nil, err, list)
	}
	for _, p := range list {
		if strings.ContainsFunc(p.String(), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("a problem does not print: %q", p.String())
		}
	}
}

func load(t *testing.T, s render.Sources) {
	t.Helper()
	c, list, err := render.Load(s, render.Options{})
	checkReport(t, c, list, err)
	if c != nil {
		checkCluster(t, c)
	}
}

func file(name string, data []byte) *render.File { return &render.File{Name: name, Data: data} }

// FuzzVIPConfig: any vipgen.yaml is refused with a report or renders.
func FuzzVIPConfig(f *testing.F) {
	f.Add([]byte(fullVIPConfig))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, install := range []string{baremetalConfig, noneConfig} {
			load(t, render.Sources{InstallConfig: *file("install-config.yaml", []byte(install)), VIPConfig: file("vipgen.yaml", data)})
		}
	})
}

// FuzzInstallConfig: any install-config.yaml is refused with a report or
// renders.
func FuzzInstallConfig(f *testing.F) {
	f.Add([]byte(baremetalConfig))
	f.Add([]byte(noneConfig))
	f.Fuzz(func(t *testing.T, data []byte) {
		load(t, render.Sources{InstallConfig: *file("install-config.yaml", data)})
	})
}

// FuzzAgentConfig: any agent-config.yaml is refused with a report or renders.
func FuzzAgentConfig(f *testing.F) {
	f.Add([]byte(agentConfig))
	f.Fuzz(func(t *testing.T, data []byte) {
		load(t, render.Sources{InstallConfig: *file("install-config.yaml", []byte(baremetalConfig)), AgentConfig: file("agent-config.yaml", data)})
	})
}

func clusterConfig(t testing.TB, install, vip string) *v1alpha1.ClusterConfig {
	t.Helper()
	return clusters.Load(t, install, vip).Config
}

// FuzzLoadClusterConfig: any cluster.yaml is refused, or renders on nodes of every role and is
// written unchanged.
func FuzzLoadClusterConfig(f *testing.F) {
	for _, c := range []*v1alpha1.ClusterConfig{clusterConfig(f, baremetalConfig, ""), clusterConfig(f, noneConfig, fullVIPConfig)} {
		data, err := c.Marshal()
		testkit.Must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := v1alpha1.LoadClusterConfig("cluster.yaml", data)
		if err != nil {
			return
		}
		written, err := c.Marshal()
		testkit.Must(t, err)
		again, err := v1alpha1.LoadClusterConfig("cluster.yaml", written)
		if err != nil {
			t.Fatalf("the written file is refused: %v\n%s", err, written)
		}
		testkit.Equal(t, c, again, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
		for _, role := range []string{"bootstrap", "master", "worker", "arbiter", "infra"} {
			checkPreview(t, c, nodeOf(c, role))
		}
	})
}

// FuzzNode: any facts of a node are refused or render.
func FuzzNode(f *testing.F) {
	full := nodeOf(clusterConfig(f, baremetalConfig, ""), "master")
	full.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
	full.Upstreams = []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("fe80::1%br-ex")}
	full.VRRP = &v1alpha1.VRRPSettings{Profile: "fast", Mode: "multicast", Version: 3, AdvertIntervalMS: 100}
	data, err := yaml.Marshal(full)
	testkit.Must(f, err)
	f.Add(data)
	clusters := []*v1alpha1.ClusterConfig{clusterConfig(f, baremetalConfig, ""), clusterConfig(f, noneConfig, fullVIPConfig)}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := &v1alpha1.Node{}
		if yaml.UnmarshalStrict(data, n) != nil || n.Validate().Err() != nil {
			return
		}
		for _, c := range clusters {
			checkPreview(t, c, n)
		}
	})
}
