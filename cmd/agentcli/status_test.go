package agentcli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/haproxy"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func TestStatus(t *testing.T) {
	root := t.TempDir()
	dir, err := state.Open(filepath.Join(root, v1alpha1.RunDir))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	h := haproxy.State{Serving: true, Backends: []haproxy.Backend{{Name: "master-0", Address: "192.0.2.10:6443", Up: true}, {Name: "master-1", Address: "192.0.2.11:6443"}}}
	h.Problem = "HAProxy says no\nand more"
	if err := dir.Publish(haproxy.StateName, h); err != nil {
		t.Fatal(err)
	}
	if err := dir.Publish(firewall.StateName, firewall.Published{InPlace: true, Restored: 2}); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := run(t, "status", "--root", root)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{"keepalived", "does not run", "master-1", "down", "problem: HAProxy says no", "redirect in place", "restored 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "and more") {
		t.Errorf("more than a line of a problem:\n%s", out)
	}
	if code, out, _ := run(t, "status", "-o", "json", "--root", root); code != exitOK || !strings.Contains(out, `"address": "192.0.2.10:6443"`) || strings.Contains(out, "keepalived") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
