package examples_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "write export/nodes as agents print it now; then read it")

// TestExport runs the commands of export/README.md on the export: each exits and prints as in
// its row of the page's table.
func TestExport(t *testing.T) {
	want := map[string]struct {
		code int
		says []string
	}{
		"import": {0, []string{"kind: VIPConfig", "name: demo"}},
		"adopt":  {0, []string{"Replaced by vipgen's\n", "master: 1 reboot with a node disruption policy, 2 reboots without", "Next: adopted/STEPS.md"}},
		"diff":   {1, []string{"pool master: reboot\n", "file /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml (99-master-vipgen): added"}},
		"status": {0, []string{"192.0.2.5  demo_API_0      master-0 68", "No findings, but 2 checks fail"}},
		"doctor": {1, []string{": 4 moves", "keepalived on master-1 ended unexpectedly, or was killed; the agent starts it again (certain)"}},
		"remove": {1, []string{"2. wait until every node runs it: now\n  - master-0 runs \"fast/unicast/v3/40ms\"", "Do not delete vipgen's MachineConfigs yet."}},
	}
	page := string(testkit.ReadFile(t, "export/README.md"))
	export, err := filepath.Abs("export")
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	testkit.Must(t, os.CopyFS("examples/export", os.DirFS(export)))
	for _, line := range regexp.MustCompile(`(?m)^go run \./cmd/vipgen (.*)$`).FindAllStringSubmatch(page, -1) {
		args := strings.Fields(line[1])
		w := want[args[0]]
		code, out, errOut := vipgen(args...)
		for _, s := range w.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: no %q in\n%s", line[1], s, out)
			}
		}
		if code != w.code || len(w.says) == 0 || !regexp.MustCompile("(?m)^\\| `"+args[0]+"` \\|.*\\| "+string(rune('0'+code))+" \\|$").MatchString(page) {
			t.Errorf("%s: exit code %d, want %d, as on the page\n%s", line[1], code, w.code, errOut)
		}
		delete(want, args[0])
	}
	testkit.Empty(t, want)
}

// TestExportIsCurrent compares the export with the formats of agents: states as printed by
// 'vipgen-agent status -o json', and events without fields of another version. nodes.json is
// derived from the states.
func TestExportIsCurrent(t *testing.T) {
	files, err := filepath.Glob("export/nodes/*-*.json")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d nodes, %v", len(files), err)
	}
	type object = map[string]any
	var items []any
	for _, name := range files {
		var s struct {
			APIVersion, Kind string
			state.Report
		}
		decode(t, name, testkit.ReadFile(t, name), &s)
		var out bytes.Buffer
		testkit.Must(t, command.Object(&out, state.ReportKind, s.Report))
		testkit.Kept(t, name, out.Bytes(), *update)
		pool, _, _ := strings.Cut(s.Node, "-")
		v := s.Keepalived.VRRP
		items = append(items, object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": s.Node, "labels": object{"node-role.kubernetes.io/" + pool: ""},
				"annotations": object{"vipgen.io/vrrp": migration.Announcement{Running: v.String()}.Encode()}},
			"status": object{"addresses": []object{{"type": "InternalIP", "address": s.MDNS.Addresses[0]}}, "conditions": []object{{"type": "Ready", "status": "True"}}}})
	}
	nodes, err := json.MarshalIndent(object{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
	testkit.Must(t, err)
	testkit.Kept(t, "export/nodes/nodes.json", append(nodes, '\n'), *update)
	records, err := filepath.Glob("export/records/*.jsonl")
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, name := range records {
		for line := range bytes.Lines(testkit.ReadFile(t, name)) {
			decode(t, name, line, new(events.Event))
		}
	}
}

// decode reads JSON without fields that v lacks.
func decode(t *testing.T, name string, data []byte, v any) {
	t.Helper()
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
}
