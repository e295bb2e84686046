package keepalived

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestWhereHeld(t *testing.T) {
	at := netip.MustParseAddr("192.0.2.11")
	for want, i := range map[string]state.Instance{
		"held here":                       {Holds: true},
		"not held here":                   {},
		"held by master-1, priority 68":   {Holder: &state.Holder{Node: "master-1", Address: at, Priority: 68}},
		"held by 192.0.2.11, priority 68": {Holder: &state.Holder{Address: at, Priority: 68}},
	} {
		testkit.Equal(t, want, whereHeld(&i))
	}
}

func TestSettingsRows(t *testing.T) {
	classic, at := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast), time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC)
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	for want, m := range map[string]*state.Migration{
		"VRRP settings|classic/unicast/v2/1s":                                              nil,
		"migrates to|fast/unicast/v3/40ms|not ready|waits for|this node: the disk is full": {Target: fast, WaitsFor: "this node: the disk is full"},
		"migrates to|fast/unicast/v3/40ms|ready|all migrate at 2026-05-02T03:00:00Z":       {Target: fast, Ready: true, Agreed: true, At: at},
		"migrates to|fast/unicast/v3/40ms|ready|waits for|c: its update is not done":       {Target: fast, Ready: true, At: at, WaitsFor: "c: its update is not done"},
		"migrates to|fast/unicast/v3/40ms|ready|now":                                       {Target: fast, Ready: true, Migrating: true},
	} {
		var cells []string
		for _, row := range settingsRows(&state.Keepalived{VRRP: &classic, Migration: m}) {
			for _, cell := range row {
				cells = append(cells, strings.TrimSpace(cell))
			}
		}
		if got := strings.Join(cells, "|"); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
