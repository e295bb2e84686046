package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	code, out, errOut := run(stream, "diff", "-", "stream.yaml")
	testkit.Equal(testkit.In(t, out, errOut), command.OK, code)
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
	exits(t, command.Shadowed, "diff", "hidden.yaml", "rendered").has("shadowed: vipgen's files never reach the node").reports("[shadowed]")
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

// The configuration of a repository is controlled by its author. Git runs configured programs
// to fetch missing objects; vipgen's Git runs none of them.
func TestHostileRepository(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	other := t.TempDir()
	git1(t, "-C", other, "init", "-q")
	for name, remote := range map[string][]string{
		"ext":        {"remote.origin.url", `ext::sh SCRIPT`, "protocol.ext.allow", "always"},
		"ssh":        {"remote.origin.url", "ssh://192.0.2.1/x", "core.sshCommand", "sh SCRIPT"},
		"uploadpack": {"remote.origin.url", other, "remote.origin.uploadpack", "sh SCRIPT"},
		"proxy":      {"remote.origin.url", "git://192.0.2.1/x", "core.gitProxy", "SCRIPT"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
			t.Chdir(dir)
			script := filepath.Join(t.TempDir(), "script")
			testkit.Must(t, os.WriteFile(script, []byte("#!/bin/sh\n> "+ran+"\nexit 1\n"), 0o700))
			lay(t, map[string]string{"a/x.yaml": "a: b\n", "b/y.yaml": "c: d\n", ".gitattributes": "* diff=evil filter=evil\n"})
			git1(t, "init", "-q")
			git1(t, "add", ".")
			git1(t, "commit", "-q", "-m", "one")
			hooks := t.TempDir()
			for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"} {
				testkit.Must(t, os.Symlink(script, filepath.Join(hooks, hook)))
			}
			settings := append(remote, "core.repositoryFormatVersion", "1", "extensions.partialClone", "origin", "remote.origin.promisor", "true",
				"core.fsmonitor", "SCRIPT", "core.hooksPath", hooks, "core.pager", "SCRIPT", "pager.cat-file", "SCRIPT", "core.editor", "SCRIPT",
				"alias.cat-file", "!SCRIPT", "alias.ls-tree", "!SCRIPT", "alias.rev-parse", "!SCRIPT", "diff.evil.textconv", "SCRIPT",
				"filter.evil.smudge", "SCRIPT", "core.alternateRefsCommand", "SCRIPT", "credential.helper", "!SCRIPT")
			for i := 0; i < len(settings); i += 2 {
				git1(t, "config", settings[i], strings.ReplaceAll(settings[i+1], "SCRIPT", script))
			}
			missing, err := git("rev-parse", "HEAD:a/x.yaml")
			testkit.Must(t, err)
			id := strings.TrimSpace(string(missing))
			testkit.Must(t, os.Remove(filepath.Join(".git/objects", id[:2], id[2:])))
			tree, err := git("rev-parse", "HEAD:b")
			testkit.Must(t, err)
			dropped := strings.TrimSpace(string(tree))
			testkit.Must(t, os.Remove(filepath.Join(".git/objects", dropped[:2], dropped[2:])))

			for _, path := range []string{"HEAD:a", "HEAD:a/x.yaml", "HEAD:b", "HEAD:b/y.yaml", "HEAD:", "HEAD:.gitattributes", id + "^{tree}:x"} {
				if code, _, errOut := run("", "diff", path, "a"); code == command.OK {
					t.Errorf("%s: %s", path, errOut)
				}
				_, err := os.Stat(ran)
				testkit.Is(testkit.In(t, path), err, os.ErrNotExist)
			}
			_ = exec.Command("git", "cat-file", "-p", id).Run() // fails: Git fetches nothing
			if _, err := os.Stat(ran); err != nil {
				t.Errorf("the repository is harmless: %v", err)
			}
		})
	}
}

// A few objects can describe a tree of any number of files.
func TestRevisionOfBillions(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Chdir(t.TempDir())
	git1(t, "init", "-q")
	made := func(stdin string, args ...string) string {
		c := exec.Command("git", args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		testkit.Must(t, err)
		return strings.TrimSpace(string(out))
	}
	entry := "100644 blob " + made("", "hash-object", "-w", "--stdin")
	for range 9 {
		var tree strings.Builder
		for i := range 10 {
			fmt.Fprintf(&tree, "%s\t%d\n", entry, i)
		}
		entry = "040000 tree " + made(tree.String(), "mktree")
	}
	exits(t, command.Failed, "diff", strings.Fields(entry)[2]+":", ".").reports("MiB: name a folder with fewer files")
}

// Links, other repositories and hidden files of a revision are left out.
func TestListing(t *testing.T) {
	r := &revision{blobs: map[string]string{}}
	r.parse("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00120000 blob cc\tlink.yaml\x00160000 commit dd\tmodule\x00100644 blob ee\t.hidden/x.yaml\x00100644 blob ff\td/.git.yaml\x00")
	testkit.Equal(t, map[string]string{"x.yaml": "aa", "d/y z.yaml": "bb"}, r.blobs)
}

func FuzzListing(f *testing.F) {
	f.Add("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00")
	f.Fuzz(func(t *testing.T, listing string) {
		r := &revision{blobs: map[string]string{}}
		r.parse(listing)
		for name, object := range r.blobs {
			if strings.ContainsAny(object, " \n\t\x00") {
				t.Errorf("%q: %q", name, object)
			}
		}
	})
}

// TestChangeAVIP walks through the page with the dual-stack example: vipgen prints what the
// page shows, no address changes its router ID in between, and the nodes agree on a holder of
// each.
func TestChangeAVIP(t *testing.T) {
	page := string(testkit.ReadFile(t, "../../docs/change-a-vip.md"))
	installConfig, vipConfig := read(t, "../../examples/dual-stack/install-config.yaml"), read(t, "../../examples/dual-stack/vipgen.yaml")
	// The example has another ingress controller, which the page leaves out.
	vipConfig, _, _ = strings.Cut(vipConfig, "  # A pool of its own")
	t.Chdir(t.TempDir())
	testkit.Equal(t, 5, walk(t, page, installConfig, vipConfig))
}

// walk follows the steps of a page in the current directory, and returns the number of compared
// lines of output. The page's vipgen.yaml is appended to the given one.
func walk(t *testing.T, page, installConfig, vipConfig string) int {
	t.Helper()
	lay(t, map[string]string{"install-config.yaml": installConfig, "vipgen.yaml": vipConfig})
	out, checked := "", 0
	for _, block := range regexp.MustCompile("(?s)```(sh|yaml|text)\n(.*?)\n```").FindAllStringSubmatch(page, -1) {
		switch block[1] {
		case "yaml":
			lay(t, map[string]string{"vipgen.yaml": vipConfig + strings.TrimPrefix(block[2], "# vipgen.yaml\nspec:\n") + "\n"})
		case "text":
			for want := range strings.SplitSeq(block[2], "\n") {
				checked++
				testkit.Contains(t, out, want+"\n")
			}
		case "sh":
			for line := range strings.SplitSeq(block[2], "\n") {
				words := strings.Fields(line)
				switch words[0] {
				case "sed":
					for _, s := range regexp.MustCompile(`s/(\S+)\$/(\S+)/`).FindAllStringSubmatch(line, -1) {
						installConfig = regexp.MustCompile(`(?m)`+regexp.QuoteMeta(s[1])+`$`).ReplaceAllLiteralString(installConfig, s[2])
					}
					lay(t, map[string]string{"install-config.yaml": installConfig})
				case "vipgen":
					out = step(t, words[1:])
					testkit.Lacks(testkit.In(t, line), out, "split brain")
				}
			}
		}
	}
	return checked
}

// step runs a command line of a page, which must succeed; diff may find differences.
func step(t *testing.T, args []string) string {
	t.Helper()
	code, out, stderr := run("", args...)
	if code != command.OK && !(args[0] == "diff" && code == command.Finding) {
		t.Fatalf("%q: exit code %d\n%s%s", args, code, out, stderr)
	}
	return out
}

// TestDiffOfClients: a diff shows the effect of every change of VIPs and of VRRP on clients. A change
// is one of vipgen.yaml, or "OLD becomes NEW" in install-config.yaml.
func TestDiffOfClients(t *testing.T) {
	for change, want := range map[string][]string{
		"vrrp: {virtualRouterIDs: {api: 9}}": {"virtual router ID of 192.0.2.2 97 becomes 9: two nodes hold the VIP (split brain)"},
		"vrrp: {profile: virtual}":           {"VRRP settings fast (VRRPv3, 40ms, unicast) become virtual (VRRPv3, 200ms, unicast): VIPs do not answer for 640ms at most"},
		"vrrp: {mode: multicast}":            {"become fast (VRRPv3, 40ms, multicast): migrate at one instant"},
		"additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.7]}]": {"VIP of api-mgmt 192.0.2.7 is added: 192.0.2.7 answers once the nodes have the change",
			"VIP of api-mgmt 192.0.2.7 is added: have api-mgmt.demo.example.com resolve to 192.0.2.7"},
		"ingress: [{name: old, controller: default, vips: [192.0.2.7]}]": {"VIP of ingress-old 192.0.2.7 is added: 192.0.2.7 answers"},
		"[192.0.2.2] becomes [192.0.2.4]": {"VIP of api 192.0.2.2 becomes 192.0.2.4: (apiServerInternalIPs is fixed at installation): programs that read it there continue to use it, such as new machines",
			"VIP of api 192.0.2.2 becomes 192.0.2.4: the API servers' certificate stays as it was installed"},
		"[192.0.2.3] becomes [192.0.2.4]":  {"VIP of ingress 192.0.2.3 becomes 192.0.2.4: (ingressIPs is fixed at installation): programs that read it there continue to use it"},
		"dns: {upstreams: [198.51.100.1]}": nil,
	} {
		good(t)
		must(t, "render", "--dir", "a")
		spec := change
		if old, to, ok := strings.Cut(change, " becomes "); ok {
			lay(t, map[string]string{"install-config.yaml": strings.Replace(goodInstallConfig, old, to, 1)})
			spec = ""
		}
		lay(t, map[string]string{"b.yaml": fleetHead + "spec: {" + spec + "}\n"})
		must(t, "render", "--dir", "b", "-c", "b.yaml")
		d := diffOf(t, command.Finding, "a", "b")
		var got []string
		for _, s := range d.Clusters[0].Clients {
			for _, text := range s.Clients {
				got = append(got, s.What+": "+text)
			}
		}
		testkit.Equal(testkit.In(t, change, got), want != nil, len(got) > 0)
		for _, w := range want {
			what, text, _ := strings.Cut(w, ": ")
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, what+": ") && strings.Contains(s, text) }) {
				t.Errorf("%s: no %q in %q", change, w, got)
			}
		}
	}
	// To an external load balancer and back, with an address that both have.
	good(t)
	lay(t, map[string]string{"b.yaml": fleetHead + "spec: {loadBalancer: {type: External}}\n"})
	must(t, "render", "--dir", "a")
	must(t, "render", "--dir", "b", "-c", "b.yaml")
	for _, tt := range []struct{ from, to, what, first string }{
		{"a", "b", "load balancer InCluster becomes External", "before: the external load balancer serves"},
		{"b", "a", "load balancer External becomes InCluster", "first the control plane changes"},
	} {
		seen := diffOf(t, command.Finding, tt.from, tt.to).Clusters[0].Clients
		if len(seen) != 1 || seen[0].What != tt.what || len(seen[0].Clients) != 5 || !strings.Contains(seen[0].Clients[0], tt.first) || !strings.Contains(seen[0].Clients[4], "192.0.2.3 is an address of both") {
			t.Errorf("%s to %s: %q", tt.from, tt.to, seen)
		}
	}
}
