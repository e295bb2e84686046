package chaos

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

const ms = time.Millisecond

var (
	apiVIP     = netip.MustParseAddr("192.0.2.5")
	ingressVIP = netip.MustParseAddr("192.0.2.6")
	testBounds = Bounds{
		Advert: 100 * ms, Refused: 300 * ms, Hung: 2250 * ms, Backends: 3 * second, BackendUp: 2 * second,
		Apply: 7 * second, Join: 7 * second, Return: 20 * second, Slack: 100 * ms,
	}
)

// story is a history of three control-plane nodes a, b, c and two with routers, r
// and s. The API VIP is on a and the ingress VIP on r from the beginning, unless the
// story is a history with the spans of its holders.
type story struct {
	name       string
	api        []span
	ingress    []span
	conditions []condition
	topologies []topology
	wants      []want // of the API VIP
	stalls     []stall
	now        time.Duration
	// want are the violated rules, with a part of the text of each.
	want []string
}

func has(node string, from, to time.Duration) span { return span{Node: node, From: from, To: to} }

func is(node string, e effect, from, to time.Duration) condition {
	return condition{Node: node, Effect: e, From: from, To: to, Why: "a test"}
}

func unfit(node string, g v1alpha1.GroupRole, notice, from, to time.Duration) condition {
	c := is(node, effectUnfit, from, to)
	c.Group, c.Notice = g, notice
	return c
}

func (s *story) history() history {
	api, ingress := []v1alpha1.GroupRole{v1alpha1.GroupAPI}, []v1alpha1.GroupRole{v1alpha1.GroupIngress}
	h := history{
		Now:        s.now,
		Nodes:      []node{{"a", true, api, 0}, {"b", true, api, 0}, {"c", true, api, 1}, {"r", false, ingress, 0}, {"s", false, ingress, 1}},
		VIPs:       []vip{{Addr: apiVIP, Group: v1alpha1.GroupAPI, Wants: s.wants}, {Addr: ingressVIP, Group: v1alpha1.GroupIngress, Wants: []want{{0, wantHeld}}}},
		Conditions: s.conditions, Topologies: s.topologies, Stalls: s.stalls,
	}
	if h.Now == 0 {
		h.Now = 10 * second
	}
	if s.wants == nil {
		h.VIPs[0].Wants = []want{{0, wantHeld}}
	}
	add := func(vip netip.Addr, spans []span, usual string) {
		if spans == nil {
			spans = []span{has(usual, 0, forever)}
		}
		for _, x := range spans {
			x.VIP = vip
			h.Holders = append(h.Holders, x)
		}
	}
	add(apiVIP, s.api, "a")
	add(ingressVIP, s.ingress, "r")
	return h
}

var goodStories = []story{
	{name: "nothing happens"},
	{name: "a dies and b takes over in time", conditions: []condition{is("a", effectOut, second, 5*second)},
		api: []span{has("a", 0, second), has("b", 1450*ms, forever)}},
	{name: "the VIP moves, and two hold it for the time of an advert",
		api: []span{has("a", 0, 2100*ms), has("b", 2*second, forever)}},
	{name: "a's HAProxy hangs, which takes time to notice", conditions: []condition{unfit("a", v1alpha1.GroupAPI, 2250*ms, second, 8*second)},
		api: []span{has("a", 0, 3700*ms), has("b", 3650*ms, forever)}},
	{name: "nobody could hold", conditions: []condition{is("a", effectOut, second, 9*second), is("b", effectMute, second, 9*second), unfit("c", v1alpha1.GroupAPI, 300*ms, second, 9*second), is("a", effectUnsure, 9*second, forever), is("b", effectUnsure, 9*second, forever), is("c", effectUnsure, 9*second, forever)},
		api: []span{has("a", 0, second)}},
	{name: "no API server anywhere: who holds serves nobody, and no other would",
		conditions: []condition{is("a", effectNoAPI, second, forever), is("b", effectNoAPI, second, forever), is("c", effectNoAPI, second, forever)}},
	{name: "one holder on each side of a partition, from the end of an election on",
		topologies: []topology{{2 * second, map[string]int{"c": 1}}}, api: []span{has("a", 0, forever), has("c", 2450*ms, forever)}},
	{name: "after healing, link addresses have to be found first",
		topologies: []topology{{2 * second, map[string]int{"c": 1}}, {5 * second, nil}}, api: []span{has("a", 0, forever), has("c", 2450*ms, 6100*ms)}},
	{name: "a frozen keepalived keeps an address, and another takes over",
		conditions: []condition{is("a", effectMute, second, 5*second)}, api: []span{has("a", 0, 5100*ms), has("b", 1450*ms, forever)}},
	{name: "an address that was left behind", conditions: []condition{is("b", effectStale, second, 4*second)},
		api: []span{has("a", 0, forever), has("b", 1100*ms, 4050*ms)}},
	{name: "no node holds it, and this machine was late", conditions: []condition{is("a", effectOut, second, forever)},
		api: []span{has("a", 0, second), has("b", 2400*ms, forever)}, stalls: []stall{{2 * second, 950 * ms}}},
	{name: "keepalived was told to read its configuration meanwhile", conditions: []condition{is("a", effectOut, second, forever), is("", effectReload, 500*ms, 8*second)},
		api: []span{has("a", 0, second), has("b", 1800*ms, forever)}},
	{name: "a holder whose addresses are odd is no peer any more, and goes", conditions: []condition{is("a", effectUnsure, second, forever)},
		api: []span{has("a", 0, 3050*ms), has("b", 3*second, forever)}},
	{name: "a VIP comes", wants: []want{{0, wantGone}, {2 * second, wantEither}, {6 * second, wantHeld}}, api: []span{has("b", 4*second, forever)}},
	{name: "a VIP goes", wants: []want{{0, wantHeld}, {2 * second, wantEither}, {6 * second, wantGone}}, api: []span{has("b", 0, 5*second)}},
	{name: "the router of the holder ends", conditions: []condition{unfit("r", v1alpha1.GroupIngress, 300*ms, second, forever)},
		ingress: []span{has("r", 0, 1400*ms), has("s", 1700*ms, forever)}},
	{name: "a broken HAProxy is no matter to the ingress VIP", conditions: []condition{unfit("r", v1alpha1.GroupAPI, 300*ms, second, forever)}},
	{name: "a cut off node without an API server of its own need not hold",
		topologies: []topology{{2 * second, map[string]int{"c": 1}}}, conditions: []condition{is("c", effectNoAPI, second, forever)}},
	{name: "a node that the others do not know joins, and goes", topologies: []topology{{second, map[string]int{"c": 1}}, {5 * second, nil}},
		conditions: []condition{is("c", effectDisowned, 5*second, forever)}, api: []span{has("a", 0, forever), has("c", 1450*ms, 6050*ms)}},
	{name: "nobody took over yet, but there is time left", now: 1400 * ms, conditions: []condition{is("a", effectOut, second, forever)},
		api: []span{has("a", 0, second)}},
}

var badStories = []story{
	{name: "a node that the others do not know joins, and stays", topologies: []topology{{second, map[string]int{"c": 1}}, {5 * second, nil}},
		conditions: []condition{is("c", effectDisowned, 5*second, forever)}, api: []span{has("a", 0, forever), has("c", 1450*ms, 6150*ms)},
		want: []string{"split-brain a and c both hold 192.0.2.5"}},
	{name: "two hold for too long", api: []span{has("a", 0, 4*second), has("b", 2*second, forever)}, want: []string{"split-brain a and b both hold 192.0.2.5"}},
	{name: "three hold", api: []span{has("a", 0, forever), has("b", 2*second, forever), has("c", 2*second, forever)},
		want: []string{"split-brain a and b", "split-brain a and c", "split-brain b and c"}},
	{name: "two on the same side of a partition", topologies: []topology{{second, map[string]int{"c": 1}}},
		api: []span{has("a", 0, forever), has("b", 3*second, forever), has("c", 1400*ms, forever)}, want: []string{"split-brain a and b"}},
	{name: "the network heals, and both stay", topologies: []topology{{2 * second, map[string]int{"c": 1}}, {5 * second, nil}},
		api: []span{has("a", 0, forever), has("c", 2450*ms, forever)}, want: []string{"split-brain a and c"}},
	{name: "nobody takes over", conditions: []condition{is("a", effectOut, second, forever)}, api: []span{has("a", 0, second)},
		want: []string{"no-holder no node holds 192.0.2.5, although b could", "no-holder no node holds 192.0.2.5, although c could"}},
	{name: "somebody takes over late", conditions: []condition{is("a", effectOut, second, forever)}, api: []span{has("a", 0, second), has("b", 2*second, forever)},
		want: []string{"although b could", "although c could"}},
	{name: "nothing happened, and no node holds it", api: []span{has("a", 0, second), has("a", 2*second, forever)}, want: []string{"although a could", "although b could", "although c could"}},
	{name: "the holder cannot serve, and stays", conditions: []condition{unfit("a", v1alpha1.GroupAPI, 300*ms, second, forever)},
		want: []string{"no-holder a, which cannot serve, holds 192.0.2.5, although b could", "although c could"}},
	{name: "the other router was there", conditions: []condition{unfit("r", v1alpha1.GroupIngress, 300*ms, second, forever)},
		want: []string{"no-holder r, which cannot serve, holds 192.0.2.6, although s could"}},
	{name: "a frozen holder is not replaced", conditions: []condition{is("a", effectMute, second, forever)}, want: []string{"although b could", "although c could"}},
	{name: "a frozen holder thaws, and stays beside the other", conditions: []condition{is("a", effectMute, second, 4*second)},
		api: []span{has("a", 0, forever), has("b", 1400*ms, forever)}, want: []string{"split-brain a and b"}},
	{name: "a holder that the others have lost as a peer stays", conditions: []condition{is("a", effectUnsure, second, forever)},
		api: []span{has("a", 0, forever), has("b", 3*second, forever)}, want: []string{"split-brain a and b"}},
	{name: "what was left behind stays", conditions: []condition{is("b", effectStale, second, 4*second)},
		api: []span{has("a", 0, forever), has("b", 1100*ms, forever)}, want: []string{"split-brain a and b"}},
	{name: "the VIP is on a node that somebody left it on, and nobody else has it", conditions: []condition{is("b", effectStale, second, forever)},
		api: []span{has("a", 0, 1200*ms), has("b", 1100*ms, forever)}, want: []string{"although a could", "although c could"}},
	{name: "a cut off node that could hold does not", topologies: []topology{{2 * second, map[string]int{"c": 1}}}, want: []string{"no node holds 192.0.2.5, although c could"}},
	{name: "an old VIP stays", wants: []want{{0, wantHeld}, {2 * second, wantEither}, {6 * second, wantGone}}, want: []string{"not-wanted a holds 192.0.2.5"}},
	{name: "a new VIP does not come", wants: []want{{0, wantGone}, {2 * second, wantEither}, {6 * second, wantHeld}}, api: []span{},
		want: []string{"although a could", "although b could", "although c could"}},
	{name: "an API server is back, and load balancers had time to find it",
		conditions: []condition{is("a", effectNoAPI, second, forever), is("b", effectNoAPI, second, 3*second), is("c", effectNoAPI, second, forever), is("b", effectUnsureAPI, 3*second, 5*second)},
		api:        []span{has("a", 0, 2*second)}, want: []string{"although a could", "although b could", "although c could"}},
	{name: "being late excuses only so much", conditions: []condition{is("a", effectOut, second, forever)},
		api: []span{has("a", 0, second), has("b", 4*second, forever)}, stalls: []stall{{2 * second, 500 * ms}}, want: []string{"although b could", "although c could"}},
}

func TestGoodStories(t *testing.T) {
	for _, s := range goodStories {
		t.Run(s.name, func(t *testing.T) {
			if found, _ := judgeHistory(s.history(), testBounds); len(found) > 0 {
				t.Errorf("a false alarm: %v", found)
			}
		})
	}
}

func TestBadStories(t *testing.T) {
	for _, s := range badStories {
		t.Run(s.name, func(t *testing.T) {
			s.judge(t, s.history(), testBounds)
		})
	}
}

// judge compares the violations of a history with those that the story wants.
func (s *story) judge(t *testing.T, h history, b Bounds) {
	t.Helper()
	found, _ := judgeHistory(h, b)
	var got []string
	for _, v := range found {
		got = append(got, string(v.Rule)+" "+v.Happened)
		if v.To-v.From <= v.Allowed && v.Rule != logFlood {
			t.Errorf("%v was allowed", v)
		}
	}
	slices.Sort(got)
	if len(got) != len(s.want) {
		t.Fatalf("found %q, want %q", got, s.want)
	}
	for i, want := range s.want {
		testkit.Contains(t, got[i], want)
	}
}

func TestLongest(t *testing.T) {
	s := story{conditions: []condition{is("a", effectOut, second, forever)}, api: []span{has("a", 0, second), has("b", 1300*ms, 3*second), has("c", 2880*ms, forever)}}
	_, got := judgeHistory(s.history(), testBounds)
	testkit.Equal(t, longest{Without: 300 * ms, Overlap: 120 * ms}, got)
}

// grows returns the log of a container that grows by a number of bytes per second in a time
// span.
func grows(perSecond int64, from, to time.Duration) (out []logged) {
	for at := time.Duration(0); at <= 40*second; at += second {
		spent := min(max(at-from, 0), to-from)
		out = append(out, logged{at, "a", "keepalived", 500 + perSecond*int64(spent/second)})
	}
	return out
}

func TestLogFlood(t *testing.T) {
	restarted := grows(logLimit-1, 0, 40*second)
	for i := range restarted {
		if restarted[i].At > 20*second {
			restarted[i].Bytes = 100
		}
	}
	for _, x := range []struct {
		name string
		logs []logged
		now  time.Duration
		want bool
	}{
		{"nothing is measured", nil, 40 * second, false},
		{"just what is allowed", grows(logLimit, 0, 40*second), 40 * second, false},
		{"more than that", grows(logLimit+1, 0, 40*second), 40 * second, true},
		{"a burst that is over in time", grows(2*logLimit, 10*second, 15*second), 40 * second, false},
		{"a burst that is not", grows(2*logLimit, 10*second, 16*second), 40 * second, true},
		{"all at once", grows(11*logLimit, second, 2*second), 40 * second, true},
		{"it is not time to judge that", grows(2*logLimit, 10*second, 40*second), 15 * second, false},
		{"another pod begins anew", restarted, 40 * second, false},
		{"two containers share the rate", append(grows(logLimit, 0, 40*second), logged{40 * second, "b", "keepalived", 1 << 40}), 40 * second, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := story{now: x.now}
			h := s.history()
			h.Logged = x.logs
			found, _ := judgeHistory(h, testBounds)
			if got := len(found) == 1 && found[0].Rule == logFlood && slices.Equal(found[0].Nodes, []string{"a"}); got != x.want || !got && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}
