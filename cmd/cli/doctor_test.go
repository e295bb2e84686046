package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// records is the folder of records of a lab in which keepalived was killed on one node, and
// HAProxy stopped on another.
const records = "../../examples/export/records"

// The page shows the output of doctor.
func TestDoctorOfThePage(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/troubleshoot.md")
	block := regexp.MustCompile("(?s)```\n(3 nodes.*?)\n```").FindSubmatch(page)
	if block == nil {
		t.Fatal("no output on the page")
	}
	exits(t, command.Finding, "doctor", records).cleanly().has(strings.Split(string(block[1]), "\n...\n")...)
}

func TestDoctor(t *testing.T) {
	var all struct {
		Files []doctor.File `json:"files"`
		doctor.Report
	}
	testkit.Must(t, json.Unmarshal([]byte(exits(t, command.Finding, "doctor", records, "-o", "json").out), &all))
	causes := lists.Map(all.Moves, func(m doctor.Move) string { return string(m.Cause.Code) })
	if got := strings.Join(causes, " "); got != "first-holder keepalived-died haproxy-down haproxy-down" || len(all.Files) != 3 || len(all.Nodes) != 3 {
		t.Errorf("%s of %+v", got, all.Files)
	}

	page := exits(t, command.Finding, "doctor", records, "-o", "html").has("keepalived ended although it is wanted").out
	testkit.Equal(t, 6, strings.Count(page, `class="timeline"`))

	for _, tt := range []struct {
		args string
		code int
		out  string
	}{
		{"--since 1s", command.OK, ": no move"},
		{"--since 2026-03-02T09:10:40Z", command.Finding, ": 2 moves"},
		{"--vip 192.0.2.99", command.OK, ": no move"},
		{"--vip 2001:db8::5 --unplanned", command.Finding, ": 2 moves"},
		{records + "/master-0-vipgen-events.jsonl", command.Finding, ": 4 moves"},
	} {
		exits(t, tt.code, append([]string{"doctor", records}, strings.Fields(tt.args)...)...).has(tt.out)
	}
}

func TestDoctorOfBadInput(t *testing.T) {
	dir := t.TempDir()
	empty, odd := filepath.Join(dir, "empty"), filepath.Join(dir, "odd.jsonl")
	testkit.Must(t, os.Mkdir(empty, 0o755))
	testkit.Must(t, os.WriteFile(odd, []byte("apiVersion: v1\nkind: ConfigMap\n"), 0o644))
	for _, tt := range []struct {
		args, out string
		code      int
	}{
		{"", "missing", command.Input},
		{"no-such-file", "no such file", command.Failed},
		{empty, "no file named like vipgen-events.jsonl", command.Failed},
		{odd, "no event", command.Input},
		{records + " --vip here", "expected an address", command.Input},
		{records + " --since yesterday", "expected a time", command.Input},
		{records + " -o yaml", "expected text, json or html", command.Input},
	} {
		exits(t, tt.code, append([]string{"doctor"}, strings.Fields(tt.args)...)...).reports(tt.out)
	}
}

// Text recorded by a node is never interpreted by a terminal or a browser, wherever it appears:
// as a name, in a cause, or as evidence.
func TestDoctorOfHostileText(t *testing.T) {
	const odd = `\u001b[2J<img src=x>\u202e`
	file := filepath.Join(t.TempDir(), "x.jsonl")
	var lines []string
	for i, rest := range []string{
		`"kind":"agent-started"`,
		`"kind":"state","instance":"` + odd + `","state":"MASTER"`,
		`"kind":"late","name":"` + odd + `","for":5000`,
		`"kind":"left-out","reasons":["` + odd + `"]`,
		`"kind":"holder","instance":"` + odd + `","peer":"192.0.2.9","name":"` + odd + `"`,
		`"kind":"check","name":"` + odd + `","why":"` + odd + `"`,
		`"kind":"effective-priority","instance":"` + odd + `","priority":48,"own":68`,
		`"kind":"state","instance":"` + odd + `","state":"FAULT"`,
	} {
		lines = append(lines, fmt.Sprintf(`{"seq":%d,"boot":"b","up":%d,"time":"2026-01-01T00:00:%02dZ","node":"<script>a</script>",%s}`, i+1, 1000*i, i, rest))
	}
	testkit.Must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	_, text, _ := run("", "doctor", file)
	_, page, _ := run("", "doctor", file, "-o", "html")
	testkit.Contains(t, text, "fails", "<img")
	testkit.Lacks(t, text, "\x1b", "\u202e")
	testkit.Lacks(t, page, "\x1b", "\u202e", "<script>a", "<img")
	testkit.Contains(t, page, "&lt;script")
}

//go:embed testdata/status.txt
var wellStatus string

func TestStatus(t *testing.T) {
	copyExport(t, ".")
	testkit.Equal(t, wellStatus, must(t, "status", "nodes"))
	testkit.Contains(t, must(t, "status", "nodes", "-o", "json"), `"findings": []`)
	lay(t, map[string]string{"healthy/a.json": `{"node": "a", "mdns": {"name": "a.local", "announced": true}}`})
	out := must(t, "status", "healthy")
	testkit.Equal(testkit.In(t, out), true, strings.HasSuffix(out, "\n\nNothing is wrong.\n"))
	lay(t, map[string]string{
		"bgp/a.json": `{"node": "a", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "announced": true}]}}`,
		"bgp/b.json": `{"node": "b", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "announced": true, "preference": 1}]}}`,
		"bgp/c.json": `{"node": "c", "bgp": {"vips": [{"group": "API", "vip": "198.51.100.5", "why": "HAProxy is away"}]}}`,
	})
	testkit.Contains(t, must(t, "status", "bgp"), "198.51.100.5  API       a 0, b 1  c (HAProxy is away)\n",
		"BGP               HAPROXY", "a     -      -              announces 1 of 1  -", "c     -      -              announces 0 of 1  -")
	lay(t, map[string]string{
		"nodes/cluster-scoped-resources/core/nodes/worker-2.yaml": "kind: Node\nmetadata: {name: worker-2}\n",
		"nodes/worker-3.json": "{\"keepalived\": {\"wan",
		"more/master-3.json":  `{"node": "master-3", "version": "v1.3.0", "keepalived": {"wanted": true, "pid": 1, "guard": {"inPlace": true}, "instances": [{"name": "demo_API_0\u001b[31m", "vip": "192.0.2.5", "holds": true, "peers": ["192.0.2.1", "192.0.2.2"]}]}}`,
	})
	exits(t, command.Finding, "status", "nodes", "more/master-3.json").cleanly().has(
		"192.0.2.5  demo_API_0      master-0 68, master-3 0  master-1 68, ", "\nworker-2  -       -  ", "\n4 findings\n  split-brain: 192.0.2.5: master-0, master-3 hold demo_API_0\n",
		"  versions-differ: agents of several versions: v1.2.0 on master-0, master-1, master-2, worker-0, worker-1; v1.3.0 on master-3\n",
		"  missing-state: worker-2: ", "  unreadable-state: nodes/worker-3.json cannot be read: unexpected EOF\n",
	)
	var got struct {
		VIPs     []struct{ Holders []string }
		Findings []struct{ Code string }
	}
	if _, out, _ = run("", "status", "nodes", "more/master-3.json", "-o", "json"); json.Unmarshal([]byte(out), &got) != nil || len(got.VIPs) != 2 || len(got.VIPs[0].Holders) != 2 || len(got.Findings) != 4 {
		t.Errorf("%+v\n%s", got, out)
	}
	// Output of a node reaches the terminal as text.
	exits(t, command.Finding, "status", "more/master-3.json").has(`demo_API_0\x1b[31m`).lacks("\x1b")
	lay(t, map[string]string{"other.json": `{"hello": 1}`, "none/other.json": `{"hello": 1}`})
	for args, want := range map[string]int{
		"status": command.Input, "status no-such": command.Failed, "status other.json": command.Input, "status none": command.Input, "status nodes -o yaml": command.Input,
	} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}
