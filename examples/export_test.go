package examples_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
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

// TestExport runs the commands of export/README.md on the export: each exits as in its row of the
// page's table. What they print is tested in cmd/cli.
func TestExport(t *testing.T) {
	page := string(testkit.ReadFile(t, "export/README.md"))
	export, err := filepath.Abs("export")
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	testkit.Must(t, os.CopyFS("examples/export", os.DirFS(export)))
	lines := regexp.MustCompile(`(?m)^go run \./cmd/vipgen ((\w+) .*)$`).FindAllStringSubmatch(page, -1)
	testkit.Equal(t, 6, len(lines))
	for _, line := range lines {
		code, out, errOut := vipgen(strings.Fields(line[1])...)
		if out == "" || !regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\|.*\\| %d \\|$", line[2], code)).MatchString(page) {
			t.Errorf("%s: exit code %d, not as on the page\n%s%s", line[1], code, out, errOut)
		}
	}
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
