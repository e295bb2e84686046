package agentcli

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func addressList(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestWhereHeld(t *testing.T) {
	at := netip.MustParseAddr("192.0.2.11")
	for want, i := range map[string]state.Instance{
		"held here":                       {Holds: true},
		"not held here":                   {},
		"held by master-1, priority 68":   {Holder: &state.Holder{Node: "master-1", Address: at, Priority: 68}},
		"held by 192.0.2.11, priority 68": {Holder: &state.Holder{Address: at, Priority: 68}},
	} {
		if got := whereHeld(i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	root := t.TempDir()
	dir, err := state.Open(filepath.Join(root, v1alpha1.RunDir))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	h := state.HAProxy{Serving: true, Backends: []state.Backend{{Name: "master-0", Address: "192.0.2.10:6443", Up: true}, {Name: "master-1", Address: "192.0.2.11:6443"}}}
	h.Problem = "HAProxy says no\nand more"
	if err := dir.Publish(h); err != nil {
		t.Fatal(err)
	}
	if err := dir.Publish(state.Firewall{InPlace: true, VIPs: addressList("192.0.2.5", "192.0.2.17"), Restored: 2}); err != nil {
		t.Fatal(err)
	}
	m := state.MDNS{
		Name: "master-0.local", Announced: true, Interface: "br-ex", Addresses: addressList("192.0.2.10", "2001:db8::10"),
		Hosts: []state.Host{{Name: "master-7", Addresses: addressList("192.0.2.17")}}, Problem: "cluster.yaml: no\nand more",
	}
	if err := dir.Publish(m); err != nil {
		t.Fatal(err)
	}
	if err := dir.Publish(state.CoreDNS{MDNS: []string{"master-7"}}); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := run(t, "status", "--root", root)
	if code != command.OK {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{"keepalived", "does not run", "master-1", "down", "problem: HAProxy says no", "redirect in place", "192.0.2.5 192.0.2.17", "restored 2",
		"master-0.local", "192.0.2.10 2001:db8::10 on br-ex", "found      192.0.2.17", "names from mDNS  master-7", "cluster.yaml: no"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "and more") {
		t.Errorf("more than a line of a problem:\n%s", out)
	}
	if code, out, _ := run(t, "status", "-o", "json", "--root", root); code != command.OK || !strings.Contains(out, `"address": "192.0.2.10:6443"`) || strings.Contains(out, "keepalived") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestStatusOfMigration(t *testing.T) {
	classic, at := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast), time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC)
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	for want, m := range map[string]*state.Migration{
		"VRRP settings|classic/unicast/v2/1s":                                              nil,
		"switches to|fast/unicast/v3/40ms|not ready|waits for|this node: the disk is full": {Target: fast, WaitsFor: "this node: the disk is full"},
		"switches to|fast/unicast/v3/40ms|ready|all switch at 2026-05-02T03:00:00Z":        {Target: fast, Ready: true, Agreed: true, At: at},
		"switches to|fast/unicast/v3/40ms|ready|waits for|c: its update is not done":       {Target: fast, Ready: true, At: at, WaitsFor: "c: its update is not done"},
		"switches to|fast/unicast/v3/40ms|ready|now":                                       {Target: fast, Ready: true, Moving: true},
	} {
		var words []string
		settings(func(w ...string) {
			for _, x := range w {
				words = append(words, strings.TrimSpace(x))
			}
		}, &state.Keepalived{VRRP: &classic, Migration: m})
		if got := strings.Join(words, "|"); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
