package bgp

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestChanges: routers have VIPs once BFD is up or does not come up, and changes alone are events.
func TestChanges(t *testing.T) {
	vip, router := netip.MustParseAddr("198.51.100.5"), netip.MustParseAddr("192.0.2.1")
	of := func(preference int, states ...string) *state.BGP {
		s := &state.BGP{Mode: v1alpha1.AnnounceBGP, VIPs: []state.AnnouncedVIP{{VIP: vip, Announced: preference >= 0, Preference: max(preference, 0), Why: "why"}}}
		if states != nil {
			s.Peers = []state.BGPPeer{{Address: router, State: states[0], BFD: states[1], Problem: states[2]}}
		}
		return s
	}
	announced := func(ok bool, preference int, mode, why string) events.Event {
		return events.Event{Kind: events.Announced, Instance: vip.String(), VIP: vip, OK: ok, Priority: preference, State: mode, Why: why}
	}
	session := func(ok bool, now, why string) events.Event {
		return events.Event{Kind: events.Session, Name: router.String(), Peer: router, OK: ok, State: now, Why: why}
	}
	problem := of(0)
	problem.Problem = "another speaker"
	for name, tt := range map[string]struct {
		before, now *state.BGP
		want        []events.Event
	}{
		"first":       {&state.BGP{}, of(0, "active", "down", ""), []events.Event{announced(true, 0, "bgp", "why"), session(false, "active", "")}},
		"same":        {of(0, "active", "down", ""), of(0, "connect", "down", ""), nil},
		"waits":       {of(0, "active", "down", ""), of(0, "established", "down", state.BFDPending), []events.Event{session(false, "established", state.BFDPending)}},
		"carries":     {of(0, "established", "down", state.BFDPending), of(0, "established", "up", ""), []events.Event{session(true, "established", "")}},
		"without BFD": {of(0, "established", "down", state.BFDPending), of(0, "established", "init", state.BFDMissing), []events.Event{session(true, "established", state.BFDMissing)}},
		"lost":        {of(0, "established", "up", ""), of(0, "idle", "down", state.BFDDown), []events.Event{session(false, "idle", state.BFDDown)}},
		"refused":     {of(0, "idle", "", state.BFDDown), of(0, "idle", "", state.RouterRefused), []events.Event{session(false, "idle", state.RouterRefused)}},
		"behind":      {of(0), of(2), []events.Event{announced(true, 2, "bgp", "why")}},
		"withdrawn":   {of(0), of(-1), []events.Event{announced(false, 0, "bgp", "why")}},
		"problem":     {of(0), problem, []events.Event{{Kind: events.Problem, Why: "another speaker"}}},
		"gone":        {of(0, "idle", "", ""), &state.BGP{}, []events.Event{announced(false, 0, "", ""), session(false, "removed", "")}},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, changes(tt.before, tt.now))
	}
}
