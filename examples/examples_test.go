// Package examples_test runs the examples, so that they keep working.
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
	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// asVipgen makes the test program behave as vipgen, for scripts to run.
const asVipgen = "VIPGEN_EXAMPLES_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asVipgen) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// vipgen runs a command line.
func vipgen(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = cli.Run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestExamplesRender(t *testing.T) {
	for name, want := range map[string]struct {
		says string // in the output of vipgen validate
		role string // the pool of one of the MachineConfigs
	}{
		"baremetal":             {"fast (VRRPv3, 40ms, unicast) from the first packet", "worker"},
		"vsphere-interoperable": {"starts as classic (VRRPv2, 1s, unicast), then migrates to virtual", "worker"},
		"none":                  {"198.51.100.5, virtual router ID 77", "worker"},
		"dual-stack":            {"192.0.2.5, 2001:db8:0:1::5", "infra"},
	} {
		for command, part := range map[string]string{"validate": want.says, "render": "machineconfiguration.openshift.io/role: " + want.role + "\n"} {
			code, out, errOut := vipgen(command, name)
			testkit.Equal(testkit.In(t, command, name, errOut), 0, code+len(errOut))
			testkit.Contains(testkit.In(t, command, name), out, part)
		}
	}
}

// TestExamplesAreFake: addresses are from the ranges for documentation (RFC 5737, RFC 3849) or
// internal to clusters, domains from RFC 2606, and nothing resembles a secret.
func TestExamplesAreFake(t *testing.T) {
	address := regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	fine := regexp.MustCompile(`^(192\.0\.2\.|198\.51\.100\.|10\.128\.0\.0$|172\.30\.0\.0$|0\.0\.0\.0$|127\.0\.0\.1$)`)
	domain := regexp.MustCompile(`[a-z0-9-]+\.(com|org|net|io)\b`)
	secret := regexp.MustCompile(`(?m)^\s*(?:pullSecret|sshKey|password|user): (.*)$`)
	files, err := filepath.Glob("*/*.yaml")
	exported, _ := filepath.Glob("export/*/*")
	if files = append(files, exported...); err != nil || len(files) < 5 || len(exported) == 0 {
		t.Fatal("no examples", err)
	}
	for _, name := range files {
		data := testkit.ReadFile(t, name)
		for _, a := range address.FindAllString(string(data), -1) {
			if !fine.MatchString(a) {
				t.Errorf("%s: %s is not an address for documentation", name, a)
			}
		}
		for _, d := range domain.FindAllString(string(data), -1) {
			if d != "example.com" && d != "vipgen.io" && d != "kubernetes.io" && d != "openshift.io" {
				t.Errorf("%s: %s is not a domain for documentation", name, d)
			}
		}
		for _, s := range secret.FindAllStringSubmatch(string(data), -1) {
			if s[1] != "REPLACE-ME" && s[1] != `'{"auths": {}}'` {
				t.Errorf("%s: %s resembles a secret", name, s[1])
			}
		}
	}
}

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
	testkit.Must(testkit.In(t, name, string(data)), strict.Decode(v))
}
