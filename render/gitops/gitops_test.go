package gitops_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/source"
)

const cases = "../../golden/cases/"

func file(t testing.TB, name string) source.File {
	t.Helper()
	data := testkit.ReadFile(t, cases+name)
	return source.File{Name: name, Data: data}
}

func instance(t testing.TB) source.File {
	return file(t, "cluster-instance/clusterinstance.yaml")
}

func install(t testing.TB) (source.File, []source.File) {
	const dir = "agent-cluster-install/"
	return file(t, dir+"agentclusterinstall.yaml"), []source.File{file(t, dir+"clusterdeployment.yaml"), file(t, dir+"hosts.yaml")}
}

// change replaces text that must be there.
func change(t testing.TB, f source.File, pairs ...string) source.File {
	t.Helper()
	text := string(f.Data)
	for i := 0; i < len(pairs); i += 2 {
		testkit.Contains(testkit.In(t, f.Name), text, pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return source.File{Name: "c.yaml", Data: []byte(text)}
}

// facts lists the values that rendering uses, one per line.
func facts(c *gitops.Cluster) string {
	var b strings.Builder
	line := func(name string, values ...string) { b.WriteString(name + " " + strings.Join(values, " ") + "\n") }
	line("domain", c.Install.Name+"."+c.Install.BaseDomain)
	line("platform", c.Install.Platform, c.Install.LoadBalancer)
	var vips, networks []string
	for _, a := range slices.Concat(c.Install.APIVIPs, c.Install.IngressVIPs) {
		vips = append(vips, a.String())
	}
	for _, n := range c.Install.MachineNetworks {
		networks = append(networks, n.String())
	}
	line("vips", vips...)
	line("networks", networks...)
	line("nodes", strings.Repeat("m", c.Install.ControlPlane.Replicas)+strings.Repeat("w", c.Install.Compute[0].Replicas))
	if c.Install.Arbiter != nil {
		line("arbiter")
	}
	for _, h := range c.Agent.Hosts {
		words := []string{h.Name, h.Role}
		for _, a := range h.Addresses {
			words = append(words, a.Addr().String())
		}
		line("host", words...)
	}
	line("manifests", c.Manifests.Namespace, strings.Join(c.Manifests.Names, ","))
	return b.String()
}

func site(t testing.TB) source.File {
	return file(t, "site-config/siteconfig.yaml")
}

// Other spellings have the facts of the golden cases, but for what they change.
func TestRead(t *testing.T) {
	aci, others := install(t)
	for _, test := range []struct {
		name   string
		file   source.File
		others []source.File
		like   source.File // with the same facts
		want   []string    // but for these pairs
	}{
		{name: "lists of VIPs, and the networks of the nodes", file: change(t, site(t), "apiVIP: 203.0.113.5", "apiVIPs: [203.0.113.5]", "ingressVIP: 203.0.113.7", "ingressVIPs: [203.0.113.7]",
			"    machineNetwork:\n    - cidr: 203.0.113.0/24\n", ""), like: site(t)},
		{name: "the old path", file: change(t, site(t), "    extraManifests:\n      searchPaths:\n      - sno-extra-manifest/\n      - rendered/edge-3/extra-manifests/\n", "    extraManifestPath: mine/\n"), like: site(t),
			want: []string{"sno-extra-manifest/,rendered/edge-3/extra-manifests/", "mine/"}},
		{name: "a load balancer of the user's in a SiteConfig", file: change(t, site(t), `'{"capabilities": {"baselineCapabilitySet": "None"}}'`, `'{"platform": {"baremetal": {"loadBalancer": {"type": "UserManaged"}}}}'`), like: site(t),
			want: []string{"baremetal ", "baremetal UserManaged"}},
		{name: "hosts with DHCP", file: change(t, aci, "  platformType: BareMetal\n", ""), like: aci,
			want: []string{"networks 198.51.100.0/24", "networks ",
				"host master-0 master 198.51.100.20\nhost master-1 master 198.51.100.21\nhost master-2 master 198.51.100.22\nhost worker-0 worker 198.51.100.23\nhost worker-1 worker 198.51.100.24\n", ""},
			others: others[:1]},
		{name: "namespace left to kustomize", file: change(t, instance(t), "kind: ClusterInstance\nmetadata:\n  name: edge-1\n  namespace: edge-1\n", "kind: ClusterInstance\nmetadata:\n  name: edge-1\n"), like: instance(t)},
		{name: "networks of the nodes", file: change(t, instance(t), "  machineNetwork:\n  - cidr: 192.0.2.0/24\n  - cidr: 2001:db8:1::/64\n", ""), like: instance(t)},
		{name: "arbiter", file: change(t, instance(t), "hostName: master-2\n    role: master", "hostName: master-2\n    role: arbiter"), like: instance(t),
			want: []string{"nodes mmmww\n", "nodes mmww\narbiter \n", "master-2 master", "master-2 arbiter"}},
		{name: "UserManaged", file: change(t, aci, "type: ClusterManaged", "type: UserManaged"), others: others, like: aci,
			want: []string{"baremetal ", "baremetal UserManaged"}},
		{name: "networking of the user's", file: change(t, aci, "  platformType: BareMetal\n", "", "  apiVIPs: [198.51.100.5]\n", "", "  ingressVIPs: [198.51.100.7]\n", "",
			"  networking:\n", "  networking:\n    userManagedNetworking: true\n    machineNetwork: [{cidr: 198.51.100.0/24}]\n"), others: others, like: aci,
			want: []string{"platform baremetal ", "platform none ", "vips 198.51.100.5 198.51.100.7", "vips "}},
		{name: "the old reference", file: change(t, aci, "  manifestsConfigMapRefs:\n  - name: site-manifests\n  - name: vipgen-extra-manifests\n", "  manifestsConfigMapRef: {name: one}\n"), others: others, like: aci,
			want: []string{"site-manifests,vipgen-extra-manifests", "one"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var all []source.File // of the one that it is like
			if test.like.Name == aci.Name {
				all = others
			}
			like, problems := gitops.Read(test.like, "", all)
			testkit.Must(t, problems.Err())
			c, problems := gitops.Read(test.file, "", test.others)
			testkit.Must(t, problems.Err())
			for i := 0; i < len(test.want); i += 2 {
				testkit.Contains(t, facts(like), test.want[i])
			}
			testkit.Equal(t, strings.NewReplacer(test.want...).Replace(facts(like)), facts(c))
		})
	}
}

// Objects of clusters, and text that only contains their keywords.
func TestHasCluster(t *testing.T) {
	aci, others := install(t)
	for text, want := range map[string]bool{
		string(instance(t).Data):  true,
		string(aci.Data):          true,
		string(others[0].Data):    false, // a reference to one
		string(site(t).Data):      true,
		"kind: ClusterInstance\n": false,
		// Of another API group: an early name of ClusterInstance.
		"apiVersion: metaclusterinstall.openshift.io/v1alpha1\nkind: SiteConfig\n": false,
		"# kind: ClusterInstance\n": false,
		`{"apiVersion": "siteconfig.open-cluster-management.io/v1alpha1",` + "\n" + `"kind": "ClusterInstance",` + "\n" + `"spec": {}}`: true,
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: siteconfig.open-cluster-management.io/v1alpha1\n  kind: ClusterInstance\n":   true,
	} {
		testkit.Equal(testkit.In(t, text), want, gitops.HasCluster([]byte(text)))
	}
}

// All clusters of a SiteConfig have names, and a single node of one has no VIPs; nodes that
// join later are not part of its installation.
func TestReadSiteClusters(t *testing.T) {
	data := testkit.ReadFile(t, "testdata/siteconfig.yaml")
	names, problems := gitops.Names("site.yaml", data)
	if len(problems) > 0 || !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("%q, %v", names, problems)
	}
	for name, want := range map[string]string{"one": "nodes m\n", "two": "networks \nnodes m\n"} {
		c, problems := gitops.Read(source.File{Name: "site.yaml", Data: data}, name, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := facts(c); c.Install.Platform != "none" || !strings.Contains(got, want) || !strings.Contains(got, "domain "+name+".example.com\n") {
			t.Errorf("%s: read as %s", name, got)
		}
	}
}

// A file that may be an install-config gets no advice on alternatives.
func TestInstead(t *testing.T) {
	for text, want := range map[string]string{
		"kind: NMStateConfig\n---\nkind: ClusterDeployment\n": "ClusterDeployment",
		"kind: NMStateConfig\n---\nkind: Secret\n":            "NMStateConfig",
		"{\"kind\": \"Provisioning\"}":                        "Provisioning",
		"kind: ConfigMap\n---\n# none\n---\nkind: Secret\n":   "ConfigMap",
		"# a\n---\nkind: AgentConfig\nhosts: [\n":             "AgentConfig",
		"kind: AgentConfig\n---\nplatform: [\n":               "",
		"platform: {}\n---\nkind: AgentConfig\n":              "",
		"kind: InstallConfig\n---\nkind: AgentConfig\n":       "",
		"kind: Cluster\n":                                     "Cluster",
		"kind: Cluster\nbaseDomain: example.com\n":            "",
		"rendezvousIP: 192.0.2.10\n":                          "AgentConfig",
		"platform: {}\n":                                      "",
		"":                                                    "",
	} {
		got := ""
		if list := gitops.Instead(source.File{Name: "f.yaml", Data: []byte(text)}); list != nil {
			got = list[0].Found
		}
		if want != "" {
			want = `"` + want + `"`
		}
		testkit.Equal(testkit.In(t, text), want, got)
	}
}

// No content of such a file makes the reader panic, and its problems have a position.
func FuzzRead(f *testing.F) {
	aci, others := install(f)
	f.Add(instance(f).Data)
	f.Add(aci.Data)
	f.Add(site(f).Data)
	for _, o := range others {
		f.Add(append(append([]byte{}, aci.Data...), append([]byte("---\n"), o.Data...)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := gitops.Read(source.File{Name: "f.yaml", Data: data}, "", nil)
		for _, p := range problems {
			if p.File != "f.yaml" || p.Code == "" || strings.ContainsAny(p.String(), "\n\r\x1b") {
				t.Errorf("problem %q", p)
			}
		}
		if c == nil {
			if problems.Err() == nil {
				t.Error("no cluster and no error")
			}
			return
		}
		facts(c)
	})
}
