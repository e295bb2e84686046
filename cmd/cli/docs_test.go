package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// eachCommand visits the commands that do something.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Runnable() && c.HasParent() && !c.Hidden {
		visit(c)
	}
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

func TestCommandsAreDocumented(t *testing.T) {
	data := testkit.ReadFile(t, "../../docs/commands.md")
	page := string(data)
	eachCommand((&app{}).root(), func(c *cobra.Command) {
		name := c.Name()
		if c.Parent().Name() == "completion" {
			name = "`" + name + "`"
		}
		if !strings.Contains(page, name) {
			t.Errorf("commands.md does not mention %s", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !regexp.MustCompile("`--"+f.Name+"[` ]").MatchString(page) {
				t.Errorf("commands.md does not mention %s --%s", c.CommandPath(), f.Name)
			}
		})
	})
}

func TestHelpIsComplete(t *testing.T) {
	eachCommand((&app{}).root(), func(c *cobra.Command) {
		generated := c.Name() == "help" || c.Parent().Name() == "completion"
		if c.Short == "" || c.Example == "" && !generated {
			t.Errorf("%s: help without summary or example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if f.Usage == "" || f.Value.Type() != "bool" && (value == "" || !strings.Contains(f.Usage, "`")) {
				t.Errorf("%s --%s: help without a name for its value", c.CommandPath(), f.Name)
			}
		})
	})
}

// TestDocumentedCommandsRun runs every line of the pages' shell blocks that
// starts with vipgen, but for those in a pipe, on the bare-metal example; with the
// vipgen.yaml of the page, if its first YAML block is one.
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
			if block := yamlBlock.FindSubmatch(data); block != nil && bytes.HasPrefix(block[1], []byte("# vipgen.yaml\n")) {
				testkit.WriteFile(t, "vipgen.yaml", block[1])
			}
			ran := 0
			for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
				for line := range strings.Lines(block[1]) {
					if line = strings.TrimSpace(line); strings.HasPrefix(line, "vipgen ") {
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

// findings are documented commands that find something in documentedDir.
var findings = map[string]bool{
	"vipgen vr-ids vmware cnf10 cnf11":                          true,
	"vipgen vr-ids clusters":                                    true,
	"vipgen vr-ids clusters --reserve 51,52":                    true,
	"vipgen diff live.yaml rendered":                            true,
	"vipgen diff live.yaml move/machineconfigs":                 true,
	"vipgen doctor records":                                     true,
	"vipgen doctor records --vip 192.0.2.5 --since 24h":         true,
	"vipgen doctor records --unplanned":                         true,
	"vipgen doctor records -o json":                             true,
	"vipgen doctor records -o html":                             true,
	"vipgen doctor records --vip 192.0.2.5 --since 24h -o html": true,
	"vipgen adopt later.yaml --dir adopted --check --to 4.19":   true,
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
	if code := Run(strings.Fields(invocation)[1:], &in, &out, &errOut); code != want {
		t.Errorf("%s: exit code %d, want %d\n%s", line, code, want, errOut.String())
	}
	if file != "" {
		testkit.WriteFile(t, file, out.Bytes())
	}
}

// documentedDir changes into a directory with the files that the pages name.
func documentedDir(t *testing.T) {
	t.Helper()
	examples, err := filepath.Glob("../../examples/baremetal/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	files := map[string][]byte{
		"node.yaml": firstYAML(t, "../../docs/preview.md"),
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
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Abs("../../internal/day2/doctor/testdata/records")
	if err != nil {
		t.Fatal(err)
	}
	live := testkit.ReadFile(t, "../../internal/day2/adopt/testdata/live.yaml")
	states := testkit.ReadFile(t, "testdata/status/nodes.json")
	t.Chdir(t.TempDir())
	testkit.WriteFile(t, "nodes/states.json", states)
	if err := os.CopyFS("records", os.DirFS(records)); err != nil {
		t.Fatal(err)
	}
	for dir, from := range map[string]string{"master-0": "baremetal/master-0", "must-gather": "vsphere/must-gather"} {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(imported, from))); err != nil {
			t.Fatal(err)
		}
	}
	exported := testkit.ReadFile(t, filepath.Join(imported, "baremetal/cluster/controllerconfig.yaml"))
	testkit.WriteFile(t, "exported.yaml", exported)
	for _, name := range []string{"before.yaml", "later.yaml"} {
		testkit.WriteFile(t, name, live)
	}
	testkit.WriteFile(t, "running.yaml", append(bytes.Clone(live), "---\napiVersion: v1\nkind: Node\nmetadata: {name: master-0}\n"...))
	testkit.WriteFile(t, "installed.yaml", []byte(`{"kind": "ConfigMap", "metadata": {"name": "cluster-config-v1"}, "data": {"install-config": "apiVersion: v1\nmetadata: {name: demo}\nbaseDomain: example.com\nplatform: {baremetal: {apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7]}}\n"}}`))
	for name, data := range files {
		testkit.WriteFile(t, name, data)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// firstYAML gives the first YAML block of a page.
func firstYAML(t *testing.T, page string) []byte {
	t.Helper()
	data := testkit.ReadFile(t, page)
	block := yamlBlock.FindSubmatch(data)
	if block == nil {
		t.Fatalf("%s: no YAML", page)
	}
	return block[1]
}

// TestDocumentedFlags: every command line of vipgen in a shell block, also behind sudo and
// in a pipe, is of a command that exists, with flags that it has.
func TestDocumentedFlags(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../agent/README.md", "../../agent/*/README.md", "../agentcli/README.md", "../../examples/gitops/render-clusters", "../../examples/gitops/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		pages = append(pages, found...)
	}
	invocation := regexp.MustCompile(`(?m)(?:^|[ |(])(?:\$repo/bin/|\./|bin/)?vipgen ((?:[^|>;&#)\n\\]|\\\n)*)`)
	checked := 0
	for _, page := range pages {
		data := testkit.ReadFile(t, page)
		texts := []string{string(data)}
		if filepath.Ext(page) == ".md" {
			texts = nil
			for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
				texts = append(texts, block[1])
			}
		}
		text := regexp.MustCompile(`(?m)^\s*(#|go build ).*$`).ReplaceAllString(strings.Join(texts, "\n"), "")
		for _, m := range invocation.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(strings.NewReplacer("\\\n", " ", `"`, "", "'", "").Replace(m[1]))
			c, rest, err := (&app{}).root().Find(words)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil && c.HasSubCommands() && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: vipgen %s: %v", page, strings.Join(words, " "), err)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d command lines found", checked)
	}
}

// TestPictures: the pictures of the pages are those that vipgen makes now. Write them
// anew with -update.
func TestPictures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "picture.svg")
	for picture, args := range map[string][]string{
		"../../docs/pictures/baremetal.svg": {"explain", "../../examples/baremetal/install-config.yaml", "--svg", file},
	} {
		if code, _, stderr := run("", args...); code != command.OK {
			t.Fatalf("%v: exit code %d\n%s", args, code, stderr)
		}
		got := testkit.ReadFile(t, file)
		if *update {
			testkit.WriteFile(t, picture, got)
		}
		if want, err := os.ReadFile(picture); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what vipgen %s makes: run the test with -update, and look at it (%v)", picture, strings.Join(args, " "), err)
		}
	}
	if code, _, stderr := run("", "explain", "spec.vrrp", "--svg", file); code != command.Input || !strings.Contains(stderr, "--svg is for a cluster") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestReadme: what README.md says that its first command prints is what it prints.
func TestReadme(t *testing.T) {
	data := testkit.ReadFile(t, "../../README.md")
	shown := regexp.MustCompile("(?s)The first prints three screens, among them:\n\n```\n(.*?)```").FindSubmatch(data)
	code, printed, stderr := run("", "explain", "../../examples/baremetal/install-config.yaml")
	if shown == nil || code != command.OK {
		t.Fatalf("%s, exit code %d\n%s", shown, code, stderr)
	}
	for line := range strings.Lines(string(shown[1])) {
		if !strings.Contains(printed, line) {
			t.Errorf("not printed: %s", line)
		}
	}
}
