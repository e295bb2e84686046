package cli

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

//go:embed testdata/clusterinstance.yaml
var clusterInstance string

func instanceNamed(name string) string { return strings.ReplaceAll(clusterInstance, "NAME", name) }

const pullSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: pull-secret}\nstringData: {key: hunter2}\n"

// layObjects writes a fleet of objects of all kinds: alone, several in a file, and among
// install-configs.
func layObjects(t *testing.T) {
	t.Helper()
	golden, err := filepath.Abs("../../golden/cases/agent-cluster-install")
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	lay(t, map[string]string{
		"clusters/a.yaml":                   pullSecret + "---\n" + instanceNamed("a"),
		"clusters/pull-secret.yaml":         pullSecret,
		"clusters/kustomization.yaml":       "kind: Kustomization\nresources: [a.yaml]\n",
		"clusters/broken.yaml":              "{{ helm }}",
		"clusters/b/clusterinstance.yaml":   instanceNamed("b"),
		"clusters/site/two.yaml":            instanceNamed("c") + "---\n" + instanceNamed("d"),
		"clusters/e/install-config.yaml":    clusterNamed("e"),
		"clusters/.hidden/clusters/no.yaml": instanceNamed("no"),
	})
	testkit.Must(t, os.CopyFS("clusters/edge-2", os.DirFS(golden)))
}

// A cluster renders to the same bytes alone and in the fleet, from its file, from its folder,
// and by name among others of a file; secrets reach no output.
func TestObjectsRender(t *testing.T) {
	layObjects(t)
	must(t, "render", "clusters", "--dir", "out")
	for name, input := range map[string]string{"a": "clusters/a.yaml", "b": "clusters/b/clusterinstance.yaml", "site/d": "clusters/site/two.yaml#d",
		"edge-2": "clusters/edge-2/agentclusterinstall.yaml"} {
		must(t, "render", input, "--dir", "alone")
		in := map[string]string{}
		for file, text := range snapshot(t, "out/"+name) {
			in["alone"+strings.TrimPrefix(file, "out/"+name)] = text
			testkit.Lacks(testkit.In(t, file), text, "hunter2")
		}
		testkit.Equal(testkit.In(t, name), snapshot(t, "alone"), in)
	}
	testkit.Equal(t, "", must(t, "render", "clusters", "--dir", "out", "--check"))
	// Objects that describe no cluster are left out, also where they are named.
	must(t, "render", "clusters/a.yaml", "clusters/pull-secret.yaml", "clusters/kustomization.yaml", "--dir", "some")
	// The other files of an AgentClusterInstall are input, too.
	hosts := read(t, "clusters/edge-2/hosts.yaml")
	lay(t, map[string]string{"clusters/edge-2/hosts.yaml": strings.Replace(hosts, "198.51.100.21", "198.51.100.31", 1)})
	exits(t, command.Finding, "render", "clusters", "--dir", "out", "--check").has("198.51.100.31")
}

// The ConfigMap holds the files of an installer's asset directory, under the same names.
func TestConfigMap(t *testing.T) {
	layObjects(t)
	var got struct {
		Metadata struct{ Name, Namespace string }
		Data     map[string]string
	}
	out := must(t, "render", "clusters/a.yaml", "--format", "configmap")
	if err := yaml.UnmarshalStrict([]byte(out), &struct {
		APIVersion, Kind string
		Metadata         any
		Data             map[string]string
	}{}); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, yaml.Unmarshal([]byte(out), &got))
	if got.Metadata.Name != render.ConfigMapName || got.Metadata.Namespace != "a" {
		t.Errorf("ConfigMap %+v", got.Metadata)
	}
	lay(t, map[string]string{"ocp/manifests/.keep": ""})
	must(t, "render", "clusters/a.yaml", "--allow-default-image", "--install-dir", "ocp")
	want := map[string]string{}
	for name, text := range snapshot(t, "ocp/openshift") {
		want[filepath.Base(name)] = text
	}
	if diff := cmp.Diff(want, got.Data); diff != "" || len(want) < 6 {
		t.Errorf("-openshift/ +ConfigMap\n%s", diff)
	}
	must(t, "render", "clusters/a.yaml", "--format", "configmap", "--dir", "tree", "--kustomization")
	text := read(t, "tree/kustomization.yaml")
	testkit.Equal(testkit.In(t, text), true, strings.HasSuffix(text, "resources:\n- configmaps/vipgen-extra-manifests.yaml\n"))
	must(t, "render", "clusters/a.yaml", "--allow-default-image", "--dir", "whole", "--kustomization")
	testkit.Contains(t, read(t, "whole/kustomization.yaml"), "- machineconfigs/", "- manifests/")
	if n := len(snapshot(t, "tree")); n != 3 { // and the record
		t.Errorf("%d files", n)
	}
}

// siteOf returns a SiteConfig with a cluster of each name.
func siteOf(searchPath string, names ...string) string {
	text := "apiVersion: ran.openshift.io/v1\nkind: SiteConfig\nmetadata:\n  name: site\nspec:\n  baseDomain: example.com\n  clusters:\n"
	for _, name := range names {
		text += strings.NewReplacer("NAME", name, "PATH", searchPath).Replace(`  - clusterName: NAME
    apiVIPs: [192.0.2.2]
    ingressVIPs: [192.0.2.3]
    machineNetwork: [{cidr: 192.0.2.0/24}]
    extraManifests:
      searchPaths: [PATH]
    nodes: [{hostName: a}, {hostName: b}, {hostName: c}]
`)
	}
	return text
}

// Every cluster of a SiteConfig gets a folder of manifests, like an installer's asset
// directory, which one of its search paths must be.
func TestSiteConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"site.yaml": siteOf("out/one/extra-manifests/", "one", "two"), "ocp/manifests/.keep": ""})
	must(t, "render", "site.yaml", "--format", "extra-manifests", "--dir", "out")
	must(t, "render", "site.yaml#two", "--allow-default-image", "--install-dir", "ocp")
	want, got := map[string]string{}, map[string]string{}
	for name, text := range snapshot(t, "ocp/openshift") {
		want[filepath.Base(name)] = text
	}
	for name, text := range snapshot(t, "out/two/extra-manifests") {
		got[filepath.Base(name)] = text
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 6 {
		t.Errorf("-openshift/ +extra-manifests/\n%s", diff)
	}
	if n := len(snapshot(t, "out")); n != 2*len(want)+2 { // and the records
		t.Errorf("%d files", n)
	}
	stream := must(t, "render", "site.yaml#two", "--format", "extra-manifests")
	testkit.Equal(testkit.In(t, stream), strings.Count(must(t, "render", "site.yaml#two"), "\n---\n"), strings.Count(stream, "\n---\n"))

	lay(t, map[string]string{"site.yaml": siteOf("other/", "one")})
	for format, want := range map[string]string{
		"extra-manifests": "found no folder extra-manifests, expected its path, such as - extra-manifests/",
		"configmap":       "found --format configmap, expected --format extra-manifests",
		"machineconfig":   "",
	} {
		report := exits(t, command.OK, "render", "site.yaml", "--format", format).report
		warned := strings.HasPrefix(report, "site.yaml:13:7: warning: spec.clusters[0].extraManifests.searchPaths: "+want)
		testkit.Equal(testkit.In(t, format, report), want != "", warned)
	}
}

// A ConfigMap beyond the limit of the API is refused here.
func TestConfigMapTooLarge(t *testing.T) {
	layObjects(t)
	var records strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&records, "    - {name: record-number-%d.other.example.com, addresses: [192.0.2.99]}\n", i)
	}
	lay(t, map[string]string{"clusters/b/vipgen.yaml": fleetHead + "spec:\n  dns:\n    records:\n" + records.String()})
	exits(t, command.Input, "render", "clusters/b/clusterinstance.yaml", "--format", "configmap").reports("expected at most 1048576, as the API takes").silently()
}
