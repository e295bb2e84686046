package cli

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// diffJSON is the part of a diff's JSON that tests read.
type diffJSON struct {
	Compared int
	Clusters []struct {
		Cluster string
		Pools   []struct {
			Name, Effect string
			Without      string `json:"withoutNewPolicy"`
			Reasons      []struct{ Change, Why string }
			Changes      []struct {
				Kind, Name, What string
				Fields           []struct{ Path, Old, New string }
			}
		}
		Clients []struct {
			What    string
			Clients []string
		}
		Replaces, Shadowed []struct{ Name, Other, Owner string }
	}
	Effects map[string]int
}

func diffOf(t *testing.T, want int, args ...string) (d diffJSON) {
	t.Helper()
	testkit.Must(t, json.Unmarshal([]byte(exits(t, want, append([]string{"diff", "-o", "json"}, args...)...).out), &d))
	return d
}

func TestDiff(t *testing.T) {
	good(t)
	must(t, "render", "--dir", "a")
	must(t, "render", "--dir", "b")
	testkit.Equal(t, "no difference\n", must(t, "diff", "a", "b"))
	lay(t, map[string]string{"install-config.yaml": strings.Replace(goodInstallConfig, "192.0.2.3", "192.0.2.4", 1)})
	must(t, "render", "--dir", "b")
	d := diffOf(t, command.Finding, "a", "b")
	if len(d.Clusters) != 1 || d.Clusters[0].Cluster != "demo" || len(d.Clusters[0].Pools) != 2 || d.Effects["reboot"] != 2 {
		t.Fatalf("%+v", d)
	}
	for _, p := range d.Clusters[0].Pools {
		c := p.Changes
		if p.Effect != "reboot" || len(c) != 1 || !strings.HasSuffix(c[0].Name, "/cluster.yaml") || len(c[0].Fields) != 1 || c[0].Fields[0].Path != "spec.groups[ingress].vips[0]" {
			t.Errorf("%+v", p)
		}
	}
	exits(t, command.Finding, "diff", "a", "b").has(
		"cluster demo\n  pool master: reboot\n    because of file /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml: no node disruption policy names it\n",
		"      spec.groups[ingress].vips[0]: 192.0.2.3 -> 192.0.2.4\n",
		"changed, as in pool master\n",
		"  Ignition config bootstrap: read when a host is installed; running hosts do not change\n",
		"the cluster differs; pools by what happens to them: reboot: 2\n",
	)
	exits(t, command.Finding, "diff", "a", "b", "-o", "markdown").has(
		"### vipgen diff: The cluster differs", "| `cluster demo` | `master` | **reboot** | `file /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml` |",
		"<details><summary>cluster demo</summary>\n\n```text\n",
	)
	// Rendered for another release, and otherwise the same.
	lay(t, map[string]string{"v.yaml": fleetHead + "spec: {openshiftVersion: \"4.18\", images: {keepalived: a, haproxy: a, coredns: a}}\n", "w.yaml": fleetHead + "spec: {openshiftVersion: \"4.19\", images: {keepalived: a, haproxy: a, coredns: a}}\n"})
	must(t, "render", "--dir", "v", "-c", "v.yaml")
	must(t, "render", "--dir", "w", "-c", "w.yaml")
	if d := diffOf(t, command.Finding, "v", "w"); len(d.Clusters) != 1 || len(d.Clusters[0].Pools) != 2 || d.Effects["nothing"] != 2 {
		t.Errorf("another version of Ignition: %+v", d)
	}
	// An Ignition config that does not match its MachineConfig.
	must(t, "render", "--dir", "c")
	lay(t, map[string]string{"c/ignition/master.ign": strings.Replace(read(t, "c/ignition/master.ign"), `"enabled": true`, `"enabled": false`, 1)})
	exits(t, command.Finding, "diff", "b", "c").has("Ignition config master: read when").lacks("pool master")
	// A file against a file, standard input against a folder.
	stream := must(t, "render")
	lay(t, map[string]string{"stream.yaml": stream})
	if code, out, errOut := run(stream, "diff", "-", "stream.yaml"); code != command.OK {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	exits(t, command.Finding, "diff", "a/machineconfigs/99-worker-vipgen.yaml", "b/machineconfigs/99-worker-vipgen.yaml").has("pool worker: reboot")
	for args, want := range map[string]int{
		"diff install-config.yaml a": command.Input, "diff a install-config.yaml": command.Input, "diff a": command.Input, "diff a b -o yaml": command.Input,
		"diff a no-such": command.Failed, "diff no-such:x a": command.Failed, "diff -- --output=x:y a": command.Failed,
	} {
		exits(t, want, strings.Fields(args)...)
	}
}

// User text is text in a comment: it ends no fence, cell or summary.
func TestMarkdownIsInert(t *testing.T) {
	t.Chdir(t.TempDir())
	file := func(text string) string {
		return "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: x\n  labels: {machineconfiguration.openshift.io/role: \"a|`b`<script>\"}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - path: /etc/a\n        contents: {source: \"data:,%60%60%60%60%0A%3C/details%3E" + text + "\"}\n"
	}
	lay(t, map[string]string{"a.yaml": file("1"), "b.yaml": file("2")})
	_, out, _ := run("", "diff", "a.yaml", "b.yaml", "-o", "markdown")
	testkit.Contains(t, out, "`````text\n", "\\|")
	testkit.Lacks(t, out, "\n| `cluster` | a|")

	lay(t, map[string]string{"old/a<b>/mc.yaml": file("1"), "old/c/mc.yaml": file("1"), "new/a<b>/mc.yaml": file("2"), "new/c/mc.yaml": file("1")})
	_, out, _ = run("", "diff", "old", "new", "-o", "markdown")
	testkit.Contains(t, out, "<summary>cluster a&lt;b&gt;</summary>")
}

func git1(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	testkit.Run(testkit.In(t, args), c)
}

func TestDiffOfRevisions(t *testing.T) {
	layFleet(t)
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	must(t, "render", "clusters/a", "clusters/eu", "--beside", "rendered")
	git1(t, "init", "-q")
	git1(t, "add", "clusters/a", "clusters/eu", "clusters/fleet.yaml")
	git1(t, "commit", "-q", "-m", "one")
	testkit.Equal(t, "0 of 3 clusters differ\n", must(t, "diff", "HEAD:clusters", "clusters"))
	lay(t, map[string]string{"clusters/a/install-config.yaml": strings.Replace(clusterNamed("a"), "192.0.2.3", "192.0.2.4", 1)})
	must(t, "render", "clusters/a", "--beside", "rendered")
	for _, args := range [][]string{
		{"HEAD:clusters", "clusters"}, {"HEAD:./clusters/a/rendered", "clusters/a/rendered"},
		{"HEAD:clusters/a/rendered/machineconfigs/99-master-vipgen.yaml", "clusters/a/rendered/machineconfigs/99-master-vipgen.yaml"},
	} {
		d := diffOf(t, command.Finding, args...)
		if len(d.Clusters) != 1 || !strings.HasPrefix(d.Clusters[0].Cluster, "a") || d.Clusters[0].Pools[0].Effect != "reboot" {
			t.Errorf("%v: %+v", args, d)
		}
	}
	exits(t, command.Failed, "diff", "HEAD:nothing", "clusters").reports("no such file, and no such revision")
}

// An export of a cluster, with the operator's MachineConfigs and one of a user that shadows a
// file of vipgen's.
func TestDiffWithWhatRuns(t *testing.T) {
	good(t)
	must(t, "render", "--dir", "rendered")
	live := must(t, "render", "--role", "worker")
	config := func(name, path, annotation string) string {
		return "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: " + name + "\n  annotations: {" + annotation + "}\n  labels: {machineconfiguration.openshift.io/role: worker}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: " + path + ", contents: {source: \"data:,other\"}}\n"
	}
	const keepalived = "/etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl"
	lay(t, map[string]string{
		"live.yaml":   live + config("00-worker", keepalived, "machineconfiguration.openshift.io/generated-by-controller-version: abc"),
		"hidden.yaml": live + config("99-worker-zz", keepalived, ""),
	})
	d := diffOf(t, command.Finding, "live.yaml", "rendered")
	c := d.Clusters[0]
	if len(c.Pools) != 1 || c.Pools[0].Name != "master" || len(c.Replaces) != 1 || c.Replaces[0].Owner != "the operator" || len(c.Shadowed) > 0 {
		t.Errorf("%+v", c)
	}
	code, out, errOut := run("", "diff", "hidden.yaml", "rendered")
	if code != command.Shadowed || !strings.Contains(errOut, "[shadowed]") || !strings.Contains(out, "shadowed: vipgen's files never reach the node") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	for _, allowed := range []string{keepalived, "99-worker-zz"} {
		exits(t, command.Finding, "diff", "hidden.yaml", "rendered", "--allow-shadow", allowed)
	}
	// Hard case 50: the order depends on the operator's release.
	lay(t, map[string]string{"pool.yaml": live + strings.Replace(config("50-infra-site", keepalived, ""), "role: worker", "role: infra", 1)})
	for release, want := range map[string]int{"": command.Shadowed, " --openshift-version 4.18": command.Shadowed, " --openshift-version 4.14": command.Finding} {
		if code, out, errOut := run("", strings.Fields("diff pool.yaml rendered"+release)...); code != want || want == command.Shadowed && !strings.Contains(errOut, "50-infra-site") {
			t.Errorf("diff%s: exit code %d, want %d\n%s%s", release, code, want, out, errOut)
		}
	}
	exits(t, command.Input, "diff", "pool.yaml", "rendered", "--openshift-version", "4.18.3").reports("without a patch level")
	// Two identical sides are checked as well.
	exits(t, command.Shadowed, "diff", "hidden.yaml", "hidden.yaml")
}
