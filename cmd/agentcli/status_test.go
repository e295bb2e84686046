package agentcli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/fabric"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Without running jobs every line and the exit code report it; the JSON leaves the judgement to
// vipgen status.
func TestStatusOfNothing(t *testing.T) {
	t.Setenv(v1alpha1.RootVariable, t.TempDir())
	for format, want := range map[string]int{"text": command.Finding, "json": command.OK} {
		if code, out, errOut := run(t, "status", "-o", format); code != want || out == "" || errOut != "" {
			t.Errorf("exit code %d:\n%s%s", code, out, errOut)
		}
	}
}

// The environment variable names the root if no flag does, and help shows a node's default.
func TestRootVariable(t *testing.T) {
	root := t.TempDir()
	dir, err := state.Open(filepath.Join(root, v1alpha1.RunDir))
	testkit.Must(t, err)
	defer dir.Close()
	testkit.Must(t, dir.Publish(state.Firewall{InPlace: true}))
	t.Setenv(v1alpha1.RootVariable, root)
	if code, out, errOut := run(t, "status"); code != command.OK || !strings.Contains(out, "redirect in place") {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
	if code, _, _ := run(t, "status", "--root", t.TempDir()); code != command.Finding {
		t.Errorf("--root does not take precedence: exit code %d", code)
	}
}

func TestStatus(t *testing.T) {
	root := t.TempDir()
	dir, err := state.Open(filepath.Join(root, v1alpha1.RunDir))
	testkit.Must(t, err)
	defer dir.Close()
	h := state.HAProxy{Serving: true, Backends: []state.Backend{{Name: "master-0", Address: "192.0.2.10:6443", Up: true}, {Name: "master-1", Address: "192.0.2.11:6443"}}}
	h.Problem = "HAProxy says no\nand more"
	testkit.Must(t, dir.Publish(h))
	testkit.Must(t, dir.Publish(state.Firewall{InPlace: true, VIPs: testkit.Addrs("192.0.2.5", "192.0.2.17"), Restored: 2}))
	m := state.MDNS{
		Name: "master-0.local", Announced: true, Interface: "br-ex", Addresses: testkit.Addrs("192.0.2.10", "2001:db8::10"),
		Hosts: []state.Host{{Name: "master-7", Addresses: testkit.Addrs("192.0.2.17")}}, Problem: "cluster.yaml: no\nand more",
	}
	testkit.Must(t, dir.Publish(m))
	testkit.Must(t, dir.Publish(state.CoreDNS{MDNS: []string{"master-7"}}))
	code, out, errOut := run(t, "status", "--root", root)
	if code != command.OK {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{"keepalived", "does not run", "master-1", "down", "problem: HAProxy says no", "redirect in place", "192.0.2.5 192.0.2.17", "restored 2",
		"master-0.local", "192.0.2.10 2001:db8::10 on br-ex", "found      192.0.2.17", "names from mDNS  master-7", "cluster.yaml: no"} {
		testkit.Contains(t, out, want)
	}
	testkit.Lacks(t, out, "and more")
	t.Setenv("NODE_NAME", "master-0")
	code, out, errOut = run(t, "status", "-o", "json", "--root", root)
	if code != command.OK || !strings.Contains(out, `"address": "192.0.2.10:6443"`) || strings.Contains(out, "keepalived") {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
	// A reader of reports knows every field.
	var report struct {
		APIVersion, Kind string
		state.Report
	}
	strict := json.NewDecoder(strings.NewReader(out))
	strict.DisallowUnknownFields()
	testkit.Must(testkit.In(t, out), strict.Decode(&report))
	if report.Node != "master-0" || report.Version == "" || report.Time.IsZero() || report.HAProxy == nil || report.Firewall == nil || report.CoreDNS == nil || report.MDNS == nil || report.Keepalived != nil {
		t.Errorf("%+v", report)
	}
}

func TestEvents(t *testing.T) {
	root := t.TempDir()
	if code, out, errOut := run(t, "events", "--root", root); code != command.Failed || out != "" || !strings.Contains(errOut, "no record in "+root+"/etc/keepalived or "+root+"/var/lib/vipgen/bgp: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	testkit.WriteFile(t, filepath.Join(root, "etc/keepalived", events.FileName), []byte("{\"seq\":2}\n"))
	if code, out, errOut := run(t, "events", "--root", root); code != command.OK || out != "{\"seq\":2}\n" {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	testkit.WriteFile(t, filepath.Join(root, "etc/keepalived", events.OlderName), []byte("{\"seq\":1}\n"))
	testkit.WriteFile(t, filepath.Join(root, "var/lib/vipgen/bgp", events.FileName), []byte("{\"seq\":3}\n"))
	if code, out, errOut := run(t, "events", "--root", root); code != command.OK || out != "{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n" {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}

func TestLogLevelCommand(t *testing.T) {
	root := t.TempDir()
	for _, s := range []struct {
		args string
		code int
		out  string
	}{
		{"", command.OK, "default\n"},
		{"debug", command.OK, ""},
		{"", command.OK, "DEBUG\n"},
		{"WARN --job haproxy", command.OK, ""},
		{"", command.OK, "DEBUG\nhaproxy WARN\n"},
		{"-o json", command.OK, "{\n  \"apiVersion\": \"vipgen.io/v1alpha1\",\n  \"kind\": \"LogLevels\",\n  \"level\": \"DEBUG\",\n  \"jobs\": {\n    \"haproxy\": \"WARN\"\n  }\n}\n"},
		{"--job haproxy", command.OK, "WARN\n"},
		{"loud", command.Input, ""},
		{"default --job haproxy", command.OK, ""},
		{"", command.OK, "DEBUG\n"},
		{"default", command.OK, ""},
		{"", command.OK, "default\n"},
	} {
		code, out, errOut := run(t, append([]string{"log-level", "--root", root}, strings.Fields(s.args)...)...)
		if code != s.code || out != s.out {
			t.Errorf("log-level %s: %d, %q, want %d, %q (%s)", s.args, code, out, s.code, s.out, errOut)
		}
	}
	testkit.WriteFile(t, filepath.Join(root, "run/vipgen/log-level"), []byte("loud"))
	if code, out, errOut := run(t, "log-level", "--root", root); code != command.Finding || out != "default\n" || !strings.Contains(errOut, "loud") {
		t.Errorf("with a wrong word: %d, %q, %q", code, out, errOut)
	}
}

func TestPrintFabric(t *testing.T) {
	address, a, b := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var out bytes.Buffer
	testkit.Must(t, (&app{out: &out}).printFabric(&fabric.Report{Checks: []fabric.Check{
		{Name: "unused", Address: address, From: a, Result: fabric.Pass, Figure: "answers: 0"},
		{Name: "source", Address: address, From: b, To: a, Result: fabric.Fail, Figure: "0 of 5 packets", Cause: "dropped", Next: "allow it"},
	}}))
	testkit.Equal(t, `CHECK   ADDRESS      FROM       TO         RESULT  FIGURE
unused  192.0.2.250  192.0.2.1  -          pass    answers: 0
source  192.0.2.250  192.0.2.2  192.0.2.1  fail    0 of 5 packets

fail: source, from 192.0.2.2 to 192.0.2.1
  cause  dropped
  next   allow it
`, out.String())
}

func TestVRRPScan(t *testing.T) {
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.0.2.9/24")
	scan := func(args string) (code int, out, errOut string) {
		var o, e bytes.Buffer
		if err := node.Do(func() error {
			code = Run(context.Background(), append([]string{"vrrp", "scan"}, strings.Fields(args)...), &o, &e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		checkOutput(t, strings.Fields(args), o.String())
		return code, o.String(), e.String()
	}
	code, out, errOut := scan("--duration 100ms -o json")
	var got struct {
		Interfaces []string
		Routers    []any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != command.OK || len(got.Interfaces) != 1 || got.Routers == nil {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errOut)
	}
	if code, out, errOut := scan("--duration 100ms --interface eth0"); code != command.OK || !strings.HasPrefix(out, "ID  FAMILY") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := scan("--duration 0s"); code != command.Input {
		t.Errorf("no time: exit code %d\n%s", code, errOut)
	}
	if code, _, errOut := scan("--interface no-such --duration 1s"); code != command.Failed || !strings.Contains(errOut, "this host has") {
		t.Errorf("no interface: exit code %d\n%s", code, errOut)
	}
}
