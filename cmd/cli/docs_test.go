package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
)

// TestDocumentedCommandsRun runs every line of the pages' shell blocks that starts with vipgen
// on the bare-metal example, with the last complete vipgen.yaml of the page before it.
// Pipelines are skipped, and commands of the lab, which its own module tests.
func TestDocumentedCommandsRun(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, page := range pages {
		data := testkit.ReadFile(t, page)
		if filepath.Base(page) == "change-a-vip.md" {
			continue // TestChangeAVIP
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			documentedDir(t)
			ran := 0
			for _, block := range pageBlock.FindAllStringSubmatch(string(data), -1) {
				if block[1] != "" {
					testkit.WriteFile(t, "vipgen.yaml", []byte(block[1]+block[2]))
					continue
				}
				for line := range strings.Lines(block[2]) {
					line = strings.TrimSpace(line)
					if strings.HasPrefix(line, "kubectl vipgen ") {
						runDocumented(t, line)
					}
					if strings.HasPrefix(line, "vipgen ") && !strings.HasPrefix(line, "vipgen lab ") {
						if strings.HasPrefix(line, "vipgen check-endpoint ") {
							line = onLoopback(t, line)
						}
						runDocumented(t, line)
						ran++
					}
				}
			}
			if ran == 0 && filepath.Base(page) == "commands.md" {
				t.Error("no commands")
			}
		})
	}
}

// pageBlock matches the shell blocks of a page, and each complete vipgen.yaml.
var pageBlock = regexp.MustCompile("(?s)```(?:sh|yaml\n(# vipgen.yaml\napiVersion))(.*?)```")

// findings are documented commands that report a finding in documentedDir.
var findings = map[string]bool{
	"vipgen vr-ids vmware cnf10 cnf11":                               true,
	"vipgen vr-ids clusters":                                         true,
	"vipgen vr-ids clusters --reserve 51,52":                         true,
	"vipgen diff live.yaml rendered":                                 true,
	"vipgen diff export/before.yaml adopted/rendered/machineconfigs": true,
	"vipgen doctor export/records":                                   true,
	"vipgen remove export adopted/rendered/machineconfigs":           true,
	"vipgen diff exported.yaml demo/rendered":                        true,
	"vipgen diff live.yaml migration/machineconfigs":                 true,
	"vipgen doctor records":                                          true,
	"vipgen doctor records --unplanned":                              true,
	"vipgen doctor records --vip 192.0.2.5 --since 24h -o html":      true,
	"vipgen adopt later.yaml --dir adopted --check --to 4.19":        true,
	"kubectl vipgen doctor":                                          true,
	"kubectl vipgen doctor --unplanned -o html":                      true,
	"kubectl vipgen diff rendered":                                   true,
}

func runDocumented(t *testing.T, line string) {
	t.Helper()
	invocation, file, _ := strings.Cut(line, " > ")
	want := command.OK
	if findings[invocation] {
		want = command.Finding
	}
	var in bytes.Buffer
	if from, to, piped := strings.Cut(invocation, " | "); piped {
		t.Fatalf("a pipe from %s to %s: start the line with another command", from, to)
	}
	var out, errOut bytes.Buffer
	program, words := Run, strings.Fields(invocation)[1:]
	if strings.HasPrefix(line, "kubectl ") {
		objects := read(t, "before.yaml")
		if words[1] == "migrate" || words[1] == "remove" {
			objects = withVipgen(t, filepath.Join(t.TempDir(), "adopted"), objects)
		}
		standIn(t, objects)
		program, words = RunLive, words[1:]
	}
	code := program(words, &in, &out, &errOut)
	testkit.Equal(testkit.In(t, line, errOut.String()), want, code)
	if file != "" {
		testkit.WriteFile(t, file, out.Bytes())
	}
}

// documentedDir changes into a directory with the files that the pages name.
func documentedDir(t *testing.T) {
	t.Helper()
	testkit.Deterministic(t)
	examples, err := filepath.Glob("../../examples/baremetal/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	files := map[string][]byte{
		"node.yaml": firstYAML(t, "../../docs/install.md"),
		"release.json": []byte(`{"metadata": {"version": "4.18.3"}, "references": {"spec": {"tags": [
			{"name": "keepalived-ipfailover", "from": {"name": "registry.example.com/keepalived:4.18"}},
			{"name": "haproxy-router", "from": {"name": "registry.example.com/haproxy:4.18"}},
			{"name": "coredns", "from": {"name": "registry.example.com/coredns:4.18"}}]}}}`),
		"clusters/cnf10/install-config.yaml": []byte(clusterNamed("cnf10")),
		"clusters/cnf11/install-config.yaml": []byte(strings.Replace(clusterNamed("cnf11"), "192.0.2.2", "192.0.2.12", 1)),
		"clusterinstance.yaml":               []byte(instanceNamed("edge-1")),
		"siteconfig.yaml":                    []byte(siteOf("rendered/extra-manifests/", "edge-3")),
		"scan.json":                          []byte(`{"routers": []}`),
		"live.yaml":                          []byte(`{"kind": "MachineConfig", "metadata": {"name": "00-worker", "labels": {"machineconfiguration.openshift.io/role": "worker"}}}`),
		"cluster-ingress.yaml":               []byte(clusterIngress),
		"ocp/manifests/cluster-config.yaml":  nil,
		"ocp/bootstrap.ign":                  []byte(`{"ignition": {"version": "3.2.0"}}`),
		"ocp/master.ign":                     []byte(`{"ignition": {"version": "3.2.0"}}`),
	}
	for _, name := range examples {
		data := testkit.ReadFile(t, name)
		files[filepath.Base(name)] = data
	}
	imported, err := filepath.Abs("../../internal/day2/importer/testdata")
	testkit.Must(t, err)
	copyExport(t, ".", "export", "examples/export")
	live := testkit.ReadFile(t, "before.yaml")
	for dir, from := range map[string]string{"master-0": "baremetal/master-0", "must-gather": "vsphere/must-gather"} {
		testkit.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join(imported, from))))
	}
	exported := testkit.ReadFile(t, filepath.Join(imported, "baremetal/cluster/controllerconfig.yaml"))
	testkit.WriteFile(t, "exported.yaml", exported)
	testkit.WriteFile(t, "metallb.yaml", testkit.ReadFile(t, filepath.Join(imported, "metallb/metallb.yaml")))
	testkit.WriteFile(t, "later.yaml", live)
	testkit.WriteFile(t, "running.yaml", append(bytes.Clone(live), "---\napiVersion: v1\nkind: Node\nmetadata: {name: master-0}\n"...))
	testkit.WriteFile(t, "installed.yaml", []byte(`{"kind": "ConfigMap", "metadata": {"name": "cluster-config-v1"}, "data": {"install-config": "apiVersion: v1\nmetadata: {name: demo}\nbaseDomain: example.com\nplatform: {baremetal: {apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7]}}\n"}}`))
	for name, data := range files {
		testkit.WriteFile(t, name, data)
	}
}

// copyExport changes into a new directory with copies of examples/export below it.
func copyExport(t *testing.T, below ...string) {
	t.Helper()
	export, err := filepath.Abs("../../examples/export")
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	for _, b := range below {
		testkit.Must(t, os.CopyFS(b, os.DirFS(export)))
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// firstYAML returns the first YAML block of a page.
func firstYAML(t *testing.T, page string) []byte {
	t.Helper()
	data := testkit.ReadFile(t, page)
	block := yamlBlock.FindSubmatch(data)
	if block == nil {
		t.Fatalf("%s: no YAML", page)
	}
	return block[1]
}

// TestDocumentedFlags: every command line of vipgen in a shell block has an existing command
// and existing flags. Those of the lab are tested by its module.
func TestDocumentedFlags(t *testing.T) {
	lines := commandtest.Lines(t, "../../README.md", "../../docs/*.md", "../../agent/README.md", "../../agent/*/README.md", "../agentcli/README.md", "../../examples/export/README.md", "../../examples/gitops/render-clusters", "../../examples/gitops/*/*",
		"../../action.yml", "../../templates/vipgen.yml", "../../.pre-commit-hooks.yaml")
	for _, line := range lines {
		switch {
		case line.Live:
			liveProgram.Exists(t, line)
		case len(line.Words) == 0 || line.Words[0] != labName:
			program.Exists(t, line)
		}
	}
	if len(lines) < 100 {
		t.Errorf("only %d command lines found", len(lines))
	}
}

// TestPictures: the pictures of the pages match vipgen's current output. -update rewrites them.
func TestPictures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "picture.svg")
	for picture, args := range map[string][]string{
		"../../docs/pictures/baremetal.svg": {"explain", "../../examples/baremetal/install-config.yaml", "--svg", file},
	} {
		exits(t, command.OK, args...)
		testkit.Kept(t, picture, testkit.ReadFile(t, file), *update)
	}
	exits(t, command.Input, "explain", "spec.vrrp", "--svg", file).reports("--svg is for a cluster")
}

// TestReadme runs the first command of README.md, which writes the files listed below it; the
// second one is a target of the Makefile. The page stays short.
func TestReadme(t *testing.T) {
	readme := string(testkit.ReadFile(t, "../../README.md"))
	if n := len(strings.Fields(readme)); n > 900 {
		t.Errorf("%d words: 900 at most", n)
	}
	m := regexp.MustCompile("(?s)```sh\ngo run \\./cmd/vipgen ([^\n]*) --dir rendered\n```\n\n```\n(.*?)```.*```sh\nmake (\\w+)\n```").FindStringSubmatch(readme)
	if m == nil {
		t.Fatal("README.md does not begin with two commands")
	}
	if !bytes.Contains(testkit.ReadFile(t, "../../Makefile"), []byte("\n"+m[3]+": ")) {
		t.Errorf("make %s: no such target", m[3])
	}
	dir := t.TempDir()
	t.Chdir("../..")
	exits(t, command.OK, append(strings.Fields(m[1]), "--dir", filepath.Join(dir, "rendered"))...)
	for line := range strings.Lines(m[2]) {
		_, err := os.Stat(filepath.Join(dir, strings.Fields(line)[0]))
		testkit.Check(t, err)
	}
}

// The sample of docs/commands.md is part of what the command prints.
func TestExplainPage(t *testing.T) {
	_, sample, _ := strings.Cut(string(testkit.ReadFile(t, "../../docs/commands.md")), "in part:\n\n```\n")
	sample, _, _ = strings.Cut(sample, "```")
	out := must(t, "explain", "../../examples/baremetal/install-config.yaml")
	for line := range strings.Lines(sample) {
		testkit.Contains(testkit.In(t, line), out, "\n"+line)
	}
	if strings.Count(sample, "\n") < 9 {
		t.Errorf("the sample:\n%s", sample)
	}
}

// docPage reads a page of the documentation.
func docPage(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, "../../docs/"+name))
}

// block returns the first block without a language after a line of a page, unindented.
func block(t *testing.T, page, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, after)
	if !ok {
		t.Fatalf("no %q", after)
	}
	for _, m := range regexp.MustCompile("(?sm)^( *)```(\\w*)\n(.*?\n) *```\n").FindAllStringSubmatch(rest, -1) {
		if m[2] != "" {
			continue
		}
		var out strings.Builder
		for line := range strings.Lines(m[3]) {
			out.WriteString(strings.TrimPrefix(line, m[1]))
		}
		return out.String()
	}
	t.Fatalf("no block after %q", after)
	return ""
}

const pairFlags = " --balancer lb-0=192.0.2.251/24 --balancer lb-1=192.0.2.252/24 --interface ens192"

// TestExternalPage compares docs/external-lb.md with the plan for the example. The addresses of an
// external load balancer are those of the flags, or else of the input.
func TestExternalPage(t *testing.T) {
	text := docPage(t, "external-lb.md")
	documentedDir(t)
	testkit.Equal(t, block(t, text, "## What it has to do\n"), must(t, "external-lb", "plan"))
	render := func(more string) []string { return strings.Fields("external-lb render" + pairFlags + more) }
	before := must(t, render(" --api-vip 192.0.2.250 --ingress-vip 192.0.2.250")...)
	exits(t, command.Input, render(" --api-vip 192.0.2.5")...).reports("[vip-taken]")
	lay(t, map[string]string{
		"install-config.yaml": strings.NewReplacer("192.0.2.5\n", "192.0.2.250\n", "192.0.2.6\n", "192.0.2.250\n").Replace(read(t, "install-config.yaml")),
		"vipgen.yaml":         read(t, "vipgen.yaml") + "  loadBalancer: {type: External}\n",
	})
	testkit.Equal(t, before, must(t, render("")...))
}

// TestMoveToExternalLB follows the page from the nodes' VIPs to an external load balancer where
// OpenShift's own is installed: none of its pods is left, and their replacements are for
// running clusters only.
func TestMoveToExternalLB(t *testing.T) {
	_, page, _ := strings.Cut(docPage(t, "external-lb.md"), "## Moving a cluster to it\n")
	page, _, _ = strings.Cut(page, "## Moving back\n")
	documentedDir(t)
	managed := strings.Replace(read(t, "install-config.yaml"), "type: UserManaged", "type: OpenShiftManagedDefault", 1)
	testkit.Equal(t, 9, walk(t, page, managed, read(t, "vipgen.yaml")))
	testkit.Contains(t, must(t, "validate"), "note: for a running cluster: its Infrastructure object keeps loadBalancer.type OpenShiftManagedDefault")
	for pool, names := range map[string][]string{"master": {"haproxy", "keepalived"}, "worker": {"keepalived"}} {
		must(t, "render", "--dir", "files", "--format", "files", "--overwrite")
		for _, name := range names {
			if text := read(t, "files/files/"+pool+"/etc/kubernetes/manifests/"+name+".yaml"); !strings.HasPrefix(text, "# No pod: ") || strings.Count(text, "\n") != 1 {
				t.Errorf("%s of pool %s: %s", name, pool, text)
			}
		}
	}
	for _, args := range []string{"--install-dir ocp", "--format configmap", "--format extra-manifests --dir x", "--merge ocp/master.ign --role master"} {
		exits(t, command.Input, append([]string{"render"}, strings.Fields(args)...)...).reports("External is for a running cluster")
	}
}

// TestOpenStackPage compares docs/vips.md with the script's dry run.
func TestOpenStackPage(t *testing.T) {
	text := docPage(t, "vips.md")
	documentedDir(t)
	hints := regexp.MustCompile(`(?m)^vipgen (openstack-hints .*) > hints.sh$`).FindStringSubmatch(text)
	if hints == nil {
		t.Fatal("no command")
	}
	lay(t, map[string]string{"hints.sh": must(t, strings.Fields(hints[1])...)})
	out, err := exec.Command("bash", "hints.sh").CombinedOutput()
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(text, hints[0])
	testkit.Equal(t, block(t, rest, "Read the script."), "$ bash hints.sh\n"+string(out))
}
