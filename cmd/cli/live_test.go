package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
)

// TestMain is also kubectl (see kubectl) and vipgen, under these names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "kubectl":
		os.Exit(kubectl(os.Getenv("KUBECTL_STANDIN"), os.Args[1:]))
	case "vipgen":
		os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as cmd/vipgen does
	}
	testkit.InMemory()
	os.Exit(m.Run())
}

// kubectl stands in for the real one. It relies on kubectl's documentation and on TestLive of
// cmd/kubectl-vipgen, which runs against a real API server: errors of the server go to standard
// error with exit code 1; output and exit code of a program in a pod become kubectl's own. The
// folder holds the answers: objects.yaml, nodes.json, platform, the output of a node's agent by
// node and command; "KIND.lacks" for kinds that do not exist, forbidden.
func kubectl(dir string, args []string) int {
	answer := func(name string) ([]byte, bool) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		return data, err == nil
	}
	refuse := func(code int, format string, args ...any) int {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
		return code
	}
	calls, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return refuse(99, "%v", err)
	}
	fmt.Fprintln(calls, strings.Join(args, " "))
	calls.Close()
	words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--") })
	if text, ok := answer("forbidden"); ok && strings.Contains(strings.Join(words, " "), strings.TrimSpace(string(text))) {
		return refuse(1, `Error from server (Forbidden): %s is forbidden: User "jane" cannot get resource`, words[1])
	}
	name := "objects.yaml"
	switch {
	case words[0] == "exec":
		node := strings.TrimPrefix(words[1], "keepalived-")
		if _, ok := answer(node + ".hangs"); ok {
			time.Sleep(time.Minute)
		}
		if text, ok := answer(node + ".fails"); ok {
			return refuse(2, "%s\ncommand terminated with exit code 2", text)
		}
		data, ok := answer(node + "." + words[3])
		if !ok {
			return refuse(1, "Error from server (NotFound): pods %q not found", words[1])
		}
		os.Stdout.Write(data)
		return 0
	case words[1] == "nodes":
		name = "nodes.json"
	case words[1] == "infrastructure.config.openshift.io":
		name = "platform"
	}
	for kind := range strings.SplitSeq(words[1], ",") {
		if _, ok := answer(kind + ".lacks"); ok {
			kind, _, _ = strings.Cut(kind, ".")
			return refuse(1, "error: the server doesn't have a resource type %q", kind)
		}
	}
	data, ok := answer(name)
	if !ok {
		return refuse(1, "The connection to the server localhost:8080 was refused - did you specify the right host or port?")
	}
	os.Stdout.Write(data)
	return 0
}

// standIn makes kubectl the stand-in, and the directory for temporary files one that must be
// empty after the test. It returns the folder with the answers: for the cluster of TestStatus,
// with the records of TestDoctor and the objects of TestAdopt.
func standIn(t *testing.T, objects string) string {
	t.Helper()
	dir, bin, temp := t.TempDir(), t.TempDir(), t.TempDir()
	self, err := os.Executable()
	testkit.Must(t, err)
	testkit.Must(t, os.Symlink(self, filepath.Join(bin, "kubectl")))
	states, err := filepath.Glob(filepath.Join(statesOf, "*er-*.json"))
	if err != nil || len(states) != 5 {
		t.Fatal(states, err)
	}
	for _, file := range states {
		node := strings.TrimSuffix(filepath.Base(file), ".json")
		testkit.WriteFile(t, filepath.Join(dir, node+".status"), testkit.ReadFile(t, file))
		if record, err := os.ReadFile(filepath.Join(recordsOf, node+"-vipgen-events.jsonl")); err == nil {
			testkit.WriteFile(t, filepath.Join(dir, node+".events"), record)
		}
	}
	nodes := testkit.ReadFile(t, filepath.Join(statesOf, "nodes.json"))
	for name, text := range map[string]string{"nodes.json": string(nodes), "platform": "BareMetal", "objects.yaml": objects} {
		testkit.WriteFile(t, filepath.Join(dir, name), []byte(text))
	}
	t.Setenv("KUBECTL_STANDIN", dir)
	t.Setenv("PATH", bin)
	t.Setenv("TMPDIR", temp)
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return dir
}

// statesOf and recordsOf are the nodes' answers, whatever the directory.
var (
	statesOf, _  = filepath.Abs("../../examples/export/nodes")
	recordsOf, _ = filepath.Abs(records)
)

func runLive(args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	code = RunLive(args, strings.NewReader(""), &out, &errOut)
	return code, out.String(), errOut.String()
}

// withVipgen adopts a cluster into a directory, and returns its objects afterwards.
func withVipgen(t *testing.T, dir, live string) string {
	t.Helper()
	if code, _, stderr := run(live, "adopt", "-", "--dir", dir, "--allow-default-image"); code != command.OK {
		t.Fatal(stderr)
	}
	const node = "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: master-0\n  annotations: {vipgen.io/vrrp: '{\"running\":\"classic/unicast/v2/1s\"}'}\n"
	return live + "---\n" + read(t, dir+"/rendered/machineconfigs/99-master-vipgen.yaml") + "---\n" + read(t, dir+"/rendered/machineconfigs/99-worker-vipgen.yaml") + node
}

// Each command prints the same as for an export, with the same exit code.
func TestLiveMatchesOffline(t *testing.T) {
	live := layLive(t)
	running := withVipgen(t, "demo", live)
	dir := standIn(t, live)
	t.Chdir("demo")
	testkit.Must(t, os.CopyFS("records", os.DirFS(recordsOf)))
	lay(t, map[string]string{"nodes/nodes.json": read(t, filepath.Join(dir, "nodes.json"))})
	for name, data := range snapshot(t, dir) {
		if node, ok := strings.CutSuffix(filepath.Base(name), ".status"); ok {
			lay(t, map[string]string{"nodes/" + node + ".json": data})
		}
	}
	for _, tt := range []struct{ live, offline, objects string }{
		{"status", "status nodes", live},
		{"status -o json", "status nodes -o json", live},
		{"doctor", "doctor records", live},
		{"doctor --since 1s -o json", "doctor records --since 1s -o json", live},
		{"adopt", "adopt -", live},
		{"adopt -o json", "adopt - -o json", live},
		{"adopt --dir . --check", "adopt - --dir . --check", live},
		{"diff rendered", "diff - rendered", live},
		{"diff rendered -o markdown", "diff - rendered -o markdown", running},
		{"remove", "remove -", running},
		{"remove -o json", "remove - -o json", running},
		{"migrate plan --profile virtual", "migrate plan --profile virtual", running},
		{"migrate plan --profile custom --advert-interval 90ms -o json", "migrate plan --profile custom --advert-interval 90ms -o json", running},
	} {
		testkit.WriteFile(t, filepath.Join(dir, "objects.yaml"), []byte(tt.objects))
		wantCode, want, wantErr := run(tt.objects, strings.Fields(tt.offline)...)
		code, out, stderr := runLive(strings.Fields(tt.live)...)
		// The workers hold no API VIP and have no record.
		stderr = strings.NewReplacer("warning: node worker-0: Error from server (NotFound): pods \"keepalived-worker-0\" not found\n", "",
			"warning: node worker-1: Error from server (NotFound): pods \"keepalived-worker-1\" not found\n", "").Replace(stderr)
		if strings.HasPrefix(tt.live, "migrate") {
			stderr, wantErr = "", "" // warnings about vipgen.yaml
		}
		if code != wantCode || out != want || stderr != wantErr || out == "" {
			t.Errorf("kubectl vipgen %s: exit code %d, want %d\n%s\n%s\n%s", tt.live, code, wantCode, cmp.Diff(want, out), stderr, wantErr)
		}
	}
	must(t, "migrate", "write", "--profile", "virtual", "--dir", "offline")
	if code, _, stderr := runLive("migrate", "write", "--profile", "virtual", "--dir", "live"); code != command.OK {
		t.Fatal(stderr)
	}
	for name, want := range snapshot(t, "offline") {
		testkit.Equal(testkit.In(t, name), want, read(t, "live"+strings.TrimPrefix(name, "offline")))
	}
	if calls := read(t, filepath.Join(dir, "calls")); strings.Contains(strings.ToLower(calls), "secret") {
		t.Errorf("Secrets are read:\n%s", calls)
	}
}

// A node that does not answer is reported in one line, and the others count.
func TestLiveNodes(t *testing.T) {
	dir := standIn(t, "")
	testkit.WriteFile(t, filepath.Join(dir, "master-1.hangs"), nil)
	testkit.WriteFile(t, filepath.Join(dir, "worker-0.fails"), []byte(`Error from server (Forbidden): no, it is the node that prints this`))
	testkit.Must(t, os.Remove(filepath.Join(dir, "worker-1.status")))
	code, out, stderr := runLive("status", "--timeout", "3s", "--context", "--demo", "--as", "jane")
	const want = `warning: node master-1: no answer within 3s
warning: node worker-0: Error from server (Forbidden): no, it is the node that prints this (command terminated with exit code 2)
warning: node worker-1: Error from server (NotFound): pods "keepalived-worker-1" not found
`
	if code != command.Finding || stderr != want || !strings.Contains(out, "192.0.2.5  demo_API_0  master-0 68") || strings.Count(out, "  missing-state: ") != 4 {
		t.Errorf("exit code %d\n%s\n%s", code, out, stderr)
	}
	for _, call := range []string{
		"get --as=jane --context=--demo nodes --output=json\n",
		"exec --as=jane --context=--demo --namespace=openshift-kni-infra keepalived-master-0 --container=keepalived -- /vipgen/vipgen-agent status -o json\n",
	} {
		testkit.Contains(t, read(t, filepath.Join(dir, "calls")), call)
	}
}

// A node with VIPs by BGP alone has the pod bgp, and one with both kinds of VIPs two records.
func TestLiveBGP(t *testing.T) {
	dir := standIn(t, "")
	testkit.Must(t, os.Rename(filepath.Join(dir, "master-0.status"), filepath.Join(dir, "bgp-master-0.status")))
	testkit.Must(t, os.Rename(filepath.Join(dir, "master-1.events"), filepath.Join(dir, "bgp-master-1.events")))
	_, out, stderr := runLive("status")
	testkit.Lacks(t, stderr, "master-0")
	testkit.Contains(t, out, "demo_API_0      master-0 68")
	_, _, stderr = runLive("doctor")
	testkit.Lacks(t, stderr, "master-1")
	testkit.Contains(t, read(t, filepath.Join(dir, "calls")), "bgp-master-2 --container=bgp -- /vipgen/vipgen-agent events\n")
}

func TestLiveFailures(t *testing.T) {
	const nodes = "Error from server (Forbidden): nodes is forbidden: User \"jane\" cannot get resource\nvipgen: reading the Nodes: a right is missing: kubectl get nodes --output=json: exit status 1\nThe roles that it takes: " + command.Pages + "commands.md#rights\n"
	for name, tt := range map[string]struct {
		args, file, text string // of the stand-in's; without a text it is gone
		code             int
		want             string
	}{
		"nodes":      {"status", "forbidden", "get nodes", command.Failed, nodes},
		"exec":       {"doctor", "forbidden", "exec", command.Failed, "vipgen: asking the nodes' agents: a right is missing: Error from server (Forbidden): keepalived-master-0 is forbidden: User \"jane\""},
		"platform":   {"status", "forbidden", "infrastructure.config.openshift.io", command.Failed, "To do without it: --namespace, the one of the pods keepalived-NODE\n"},
		"objects":    {"adopt", "objects.yaml", "", command.Failed, "was refused - did you specify the right host or port?\nvipgen: reading the cluster's objects: kubectl get clusterversion,"},
		"no record":  {"doctor", "*.events", "", command.Failed, "warning: node master-0: Error from server (NotFound): pods \"keepalived-master-0\" not found\n"},
		"named":      {"status --client mine", "", "", command.Failed, "vipgen: mine is not in PATH: "},
		"not vipgen": {"migrate plan --profile fast", "objects.yaml", "kind: Node\nmetadata: {name: a}\n", command.Input, "found no MachineConfig of vipgen, expected a cluster that runs vipgen ('kubectl vipgen adopt' plans the change to vipgen)"},
		"argument":   {"status nodes", "", "", command.Input, "unexpected argument \"nodes\"\nSee 'kubectl vipgen status --help'.\n"},
		"client":     {"status", "", "", command.Failed, "vipgen: kubectl or oc is not in PATH: install kubectl or oc, or name the program by --client or VIPGEN_CLIENT\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := standIn(t, "")
			gone, err := filepath.Glob(filepath.Join(dir, tt.file))
			testkit.Must(t, err)
			for _, file := range gone {
				os.Remove(file) // not the directory
			}
			if tt.text != "" {
				lay(t, map[string]string{filepath.Join(dir, tt.file): tt.text})
			}
			if name == "client" {
				t.Setenv("PATH", "/nowhere")
			}
			if code, out, stderr := runLive(strings.Fields(tt.args)...); code != tt.code || !strings.Contains(stderr, tt.want) || out != "" {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, tt.code, out, stderr)
			}
		})
	}
}

// A kind that the API server lacks is left out, and without a platform the pods are those that
// vipgen renders for platform none. Answers are stored only on request.
func TestLiveKeep(t *testing.T) {
	live := layLive(t)
	dir := standIn(t, live)
	lay(t, map[string]string{
		dir + "/machineconfiguration.operator.openshift.io.lacks": "", dir + "/infrastructure.config.openshift.io.lacks": "",
		dir + "/nodes.json": `{"items": [{"metadata": {"name": "../../master-0"}}, {"metadata": {"name": "master-0"}}]}`,
	})
	code, out, stderr := runLive("adopt", "--keep", "kept")
	if code != command.OK || out != must(t, "adopt", "live.yaml") || !strings.Contains(stderr, "note: this cluster has no machineconfiguration.operator.openshift.io; read the others\n") || read(t, "kept/objects.yaml") != live {
		t.Errorf("exit code %d\n%s\n%s", code, out, stderr)
	}
	if info, err := os.Stat("kept/objects.yaml"); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, _, stderr := runLive("adopt", "--keep", "kept"); code == command.OK || !strings.Contains(stderr, "kept") {
		t.Errorf("into a directory that holds something: exit code %d\n%s", code, stderr)
	}
	runLive("status", "--keep", "states")
	testkit.Equal(t, []string{"states/nodes/master-0.json", "states/nodes/nodes.json"}, slices.Sorted(maps.Keys(snapshot(t, "states"))))
	testkit.Contains(t, read(t, filepath.Join(dir, "calls")), "--namespace=openshift-vipgen-infra")
}

var liveProgram = commandtest.Program{Root: LiveCommand, Run: RunLive, Docs: "../../docs"}

func TestLiveHelp(t *testing.T) { liveProgram.Check(t) }
