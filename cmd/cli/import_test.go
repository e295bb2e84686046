package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// layImport lays the files of a case of the importer into the working directory.
func layImport(t *testing.T, name string) {
	t.Helper()
	root, err := filepath.Abs("../../internal/day2/importer/testdata/" + name)
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	testkit.Must(t, os.CopyFS(name, os.DirFS(root)))
}

// The written files render, and the report is the only output.
func TestImport(t *testing.T) {
	layImport(t, "baremetal")
	report := must(t, "import", "baremetal", "--dir", "new/demo")
	testkit.Contains(t, report,
		"Cluster demo.example.com\n",
		"\n  API VIPs                 192.0.2.5\n                             baremetal/cluster/controllerconfig.yaml:31\n",
		"\nNot carried over, and a cause of split brain: nodes that differ in it do not receive each other's advertisements\n  baremetal/master-0/etc/keepalived/keepalived.conf:88, and in 1 more place\n    ingress VIP: its own password\n",
	)
	files := snapshot(t, "new")
	names := slices.Sorted(maps.Keys(files))
	testkit.Equal(t, []string{"new/demo/install-config.yaml", "new/demo/vipgen.yaml"}, names)
	must(t, "render", "new/demo/install-config.yaml")
	must(t, "verify", "new/demo/install-config.yaml", "--nodes", "2")

	// An empty directory is accepted like a missing one.
	testkit.Must(t, os.Mkdir("empty", 0o755))
	must(t, "import", "baremetal", "--dir", "empty")
	if diff := cmp.Diff(files["new/demo/vipgen.yaml"], snapshot(t, "empty")["empty/vipgen.yaml"]); diff != "" || len(snapshot(t, "empty")) != 2 {
		t.Error(diff)
	}

	// The same on standard output, from objects on standard input, and as JSON.
	stdout := must(t, "import", "baremetal")
	for name, data := range files {
		testkit.Contains(testkit.In(t, name), stdout, "# "+filepath.Base(name)+"\n"+data)
	}
	var got struct {
		Cluster        string
		Files          map[string]string
		NotCarriedOver []struct{ What string }
	}
	testkit.Must(t, json.Unmarshal([]byte(must(t, "import", "baremetal", "-o", "json")), &got))
	if got.Cluster != "demo.example.com" || got.Files["vipgen.yaml"] != files["new/demo/vipgen.yaml"] || len(got.NotCarriedOver) == 0 {
		t.Errorf("%+v", got)
	}
}

func TestImportStandardInput(t *testing.T) {
	layImport(t, "vsphere")
	data := testkit.ReadFile(t, "vsphere/must-gather/quay-io-release/cluster-scoped-resources/config.openshift.io/infrastructures/cluster.yaml")
	code, stdout, stderr := run(string(data), "import", "-", "--mode", "unicast")
	if code != command.OK || !strings.Contains(stdout, "name: vs\n") || !strings.Contains(stderr, "  mode                     unicast\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// All problems are reported at once, and nothing is written.
func TestImportRefuses(t *testing.T) {
	layImport(t, "baremetal")
	for _, file := range []string{"baremetal/master-0/etc/keepalived/keepalived.conf", "baremetal/master-0/etc/kubernetes/manifests/keepalived.yaml"} {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		testkit.Must(t, err)
		_, err = f.WriteString("x {\n")
		testkit.Must(t, err)
		f.Close()
	}
	lay(t, map[string]string{"full/mine": "mine"})
	before := snapshot(t, ".")
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"import baremetal --dir new", command.Input, []string{"master-0/etc/keepalived/keepalived.conf:102:1: error: found unterminated block", "manifests/keepalived.yaml:", "vipgen: 2 problems; nothing was written\n"}},
		{"import baremetal/cluster --dir full", command.Input, []string{"full: error: found files in it"}},
		{"import no-such", command.Failed, []string{"no-such: error: found no such file or directory"}},
		{"import", command.Input, []string{"missing: FILE|DIR..."}},
		{"import baremetal -o out", command.Input, []string{`--output "out": expected text or json; files go to --dir DIR`}},
		{"import baremetal --mode anycast", command.Input, []string{"--mode: expected unicast or multicast"}},
		{"import baremetal --machine-network 192.0.2.1/24", command.Input, []string{"expected a network"}},
		{"import baremetal --cluster-name A_B", command.Input, []string{"--cluster-name: expected"}},
		{"import baremetal --base-domain A_B", command.Input, []string{"--base-domain: expected"}},
		{"import baremetal/cluster/state.yaml", command.Input, []string{"found nothing of a cluster", "[missing-field]"}},
		{"import baremetal/worker-0", command.Input, []string{"baseDomain: found no domain", "[no-vips]"}},
	} {
		exits(t, tt.code, strings.Fields(tt.args)...).silently().reports(tt.want...).lacks("hunter2")
	}
	testkit.Equal(t, before, snapshot(t, "."))
}
