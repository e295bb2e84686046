package doctor

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// announcing makes two nodes announce the VIP to a router.
const announcing = `
0 a agent-started
0 b agent-started
1 a announced 0 the load balancer path works
1 b announced 0 the load balancer path works
2 a bgp-session established
2 b bgp-session established
`

// bothLose ends the sessions of both nodes for ten seconds.
func bothLose(why string) string {
	return "10 a bgp-session idle " + why + "\n10.3 b bgp-session active " + why + "\n20 a bgp-session established\n21 b bgp-session established\n"
}

func TestCauseByBGP(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		want   []string
	}{
		"nothing":   {"", nil},
		"hold time": {bothLose(state.HoldTimeExpired), []string{"a+b>a hold-time-expired certain unheld 9700 split 0"}},
		"BFD down":  {bothLose(state.BFDDown), []string{"a+b>a bfd-down certain unheld 9700 split 0"}},
		"refused":   {bothLose(state.RouterRefused + "code 6(cease) subcode 2(administrative shutdown)"), []string{"a+b>a router-refused certain unheld 9700 split 0"}},
		"a second speaker": {"10 a bgp-session idle " + state.ConnectionLost + "\n12 a bgp-session idle " + state.OtherSpeaker,
			[]string{"a+b>b session-lost certain unheld 0 split 0", "b>b other-speaker certain unheld 0 split 0"}},
		"the connection": {bothLose(state.ConnectionLost), []string{"a+b>a session-lost certain unheld 9700 split 0"}},
		"another reason": {bothLose("invalid-msg"), []string{"a+b>a session-lost likely unheld 9700 split 0"}},
		"begins again, with BFD": {"10 a bgp-session idle " + state.BFDDown + "\n20 a bgp-session established " + state.BFDPending + "\n22 a bgp-session established",
			[]string{"a+b>b bfd-down certain unheld 0 split 0"}},
		"until the end":        {"10 a bgp-session idle " + state.BFDDown + "\n10.1 b bgp-session idle " + state.BFDDown + "\n60 b check api ok\n", []string{"a+b> bfd-down certain unheld 49900 split 0"}},
		"one of two":           {"10 a bgp-session idle " + state.BFDPending, []string{"a+b>b bfd-down certain unheld 0 split 0"}},
		"BFD does not come up": {"10 a bgp-session established " + state.BFDMissing, []string{"a+b>a+b bfd-missing certain unheld 0 split 0"}},
		"never established": {"0 c agent-started\n10 c announced 0 path\n12 c bgp-session idle " + state.RouterRefused + "code 2(open) subcode 2(bad peer as)",
			[]string{"a+b>a+b router-refused certain unheld 0 split 0"}},
		"HAProxy":                   {"10 a check haproxy connection refused\n10 a announced no no path to an API server\n", []string{"a+b>b haproxy-down certain unheld 0 split 0"}},
		"no API server, everywhere": {"10 a check api-ready none\n10 a announced no no path\n10.2 b check api-ready none\n10.2 b announced no no path\n13 a announced 0 path", []string{"a+b>a api-not-ready certain unheld 2800 split 0"}},
		"worse":                     {"10 a check machine-config status 503\n10 a announced 1 without a machine config server here", []string{"a+b>b machine-config certain unheld 0 split 0"}},
		"no check":                  {"10 a announced no no path", []string{"a+b>b check-failed likely unheld 0 split 0"}},
		"left out":                  {"10 a announced no " + vrrp.LeftOutUnregistered.Text(), []string{"a+b>b left-out certain unheld 0 split 0"}},
		"better": {"10 a announced 1 behind\n12 b announced 1 behind\n20 a announced 0 path", []string{
			"a+b>b check-failed likely unheld 0 split 0", "a+b>a better-node certain unheld 0 split 0"}},
		"shutdown":    {"10 a agent-stopping\n10 a announced 4 leaving\n11 a announced no leaving\n12 a agent-stopped\n60 a agent-started", []string{"a+b>b agent-stopped certain unheld 0 split 0"}},
		"failed":      {"10 a agent-stopping\n12 a agent-stopped the watch failed", []string{"a+b>b agent-failed certain unheld 0 split 0"}},
		"killed":      {"10 a agent-started", []string{"a+b>b agent-killed certain unheld 0 split 0"}},
		"removed":     {"10 a bgp-session removed", []string{"a+b>b session-lost likely unheld 0 split 0"}},
		"a short one": {"10 a bgp-session idle " + state.ConnectionLost + "\n10.5 a bgp-session established", []string{"a+b>a+b session-lost certain unheld 0 split 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Diagnose(byBGP(play(t, announcing+tt.script)))
			var got []string
			for i := range r.Moves {
				m := &r.Moves[i]
				got = append(got, brief(m))
				if m.Cause.Text == "" || len(m.Evidence) == 0 || len(m.Holdings) == 0 || !m.Routed || (m.Cause.Sure == Likely) != (m.Cause.Or != "") {
					t.Errorf("%+v", m)
				}
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}

func byBGP(list []events.Event) []events.Event {
	for i := range list {
		list[i].Job = "bgp"
	}
	return list
}

// TestNodeDownByBGP: the VIP ends at the latest when the node's kernel boots again.
func TestNodeDownByBGP(t *testing.T) {
	list := byBGP(play(t, announcing+"40 b agent-stopping\n41 b agent-stopped\n70 a agent-started\n71 a announced 0 path\n72 a bgp-session established"))
	for i := range list {
		if e := &list[i]; e.Node == "a" && e.Up >= 170_000 {
			e.Boot, e.Up = "next", e.Up-150_000 // booted at second 50
		}
	}
	r := Diagnose(list)
	testkit.Equal(t, 2, len(r.Moves))
	testkit.Equal(t, []string{"a+b>a agent-stopped certain unheld 0 split 0", "a>a node-down certain unheld 22000 split 0"}, []string{brief(&r.Moves[0]), brief(&r.Moves[1])})
}

// TestBothRecords: a node with VIPs of both kinds has two records with numbers of their own.
func TestBothRecords(t *testing.T) {
	r := Diagnose(append(play(t, holding+"20 a check api ok"), byBGP(play(t, announcing+"10 a agent-started"))...))
	var got []string
	for i := range r.Moves {
		got = append(got, brief(&r.Moves[i]))
	}
	testkit.Equal(t, []string{">a first-holder likely unheld 0 split 0", "a+b>b agent-killed certain unheld 0 split 0"}, got)
	testkit.Equal(t, 3, len(r.Nodes))
}

// TestSessionCauses: each problem of the job has one cause.
func TestSessionCauses(t *testing.T) {
	for i, a := range sessionCauses {
		for _, b := range sessionCauses[:i] {
			if strings.HasPrefix(a.problem, b.problem) {
				t.Errorf("%q begins with %q", a.problem, b.problem)
			}
		}
	}
}
