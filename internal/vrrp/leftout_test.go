package vrrp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// The runbooks list all reasons, in order, with their remedies.
func TestLeftOutIsDocumented(t *testing.T) {
	var rows strings.Builder
	intended := 0
	for _, why := range vrrp.LeftOutReasons() {
		if why.String() == "" || why.Next() == "" {
			t.Errorf("reason %d has no text", why)
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", why, why.Next())
		if why.Intended() {
			intended++
		}
	}
	page := strings.ReplaceAll(string(testkit.ReadFile(t, "../../docs/runbooks.md")), "`", "")
	if !strings.Contains(page, "|---|---|\n"+rows.String()+"\nThe last eight are intended") || intended != 8 {
		t.Errorf("docs/runbooks.md lacks this table, or the number of intended reasons (%d):\n%s", intended, rows.String())
	}
}

// A published reason is recognised, whatever surrounds it.
func TestParseLeftOut(t *testing.T) {
	for _, want := range vrrp.LeftOutReasons() {
		for _, text := range []string{want.String(), "api: " + want.String(), "demo_API_0: " + strings.ReplaceAll(want.String(), "...", "192.0.2.5")} {
			if got, ok := vrrp.ParseLeftOut(text); !ok || got != want {
				t.Errorf("%q is %v, %v", text, got, ok)
			}
		}
	}
	if got, ok := vrrp.ParseLeftOut("for a reason of another version"); ok {
		t.Errorf("recognized: %v", got)
	}
	testkit.Equal(t, "no other node's address in the network of 192.0.2.5 is known", vrrp.LeftOutNoPeer.Text("192.0.2.5"))
}
