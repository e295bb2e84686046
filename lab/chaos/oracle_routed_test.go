package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
)

// routedBounds are testBounds where routers know the VIPs by BGP: 650 ms without an answer.
var routedBounds = func() Bounds {
	b := testBounds
	b.Detect, b.Session, b.Hold = 150*ms, 5*second, 9*second
	return b
}()

// answers returns requests to the API VIP every 100 ms; those that were sent in one of the times have no answer.
func answers(lost ...span) (out []request) {
	for at := time.Duration(0); at < 13*second; at += askEvery {
		r := request{VIP: apiVIP, Sent: at, Ended: at + 2*ms}
		if slices.ContainsFunc(lost, func(s span) bool { return s.From <= at && at < s.To }) {
			r.Ended, r.Err = at+askTimeout, "no answer"
		}
		out = append(out, r)
	}
	return out
}

func during(from, to time.Duration) span { return span{From: from, To: to} }

// routedStory is a history of three control-plane nodes that all have the API VIP, but for the given spans.
type routedStory struct {
	name       string
	a          []span // of the node a
	conditions []condition
	lost       []span
	stalls     []stall
	now        time.Duration
	want       []string
}

var routedStories = []routedStory{
	{name: "nothing happens"},
	{name: "a loses its power, and requests to it are lost until BFD finds that",
		a: []span{has("a", -9*second, 1200*ms)}, conditions: []condition{is("a", effectOut, second, forever)}, lost: []span{during(second, 1150*ms)}},
	{name: "a has no power, and routes to it stay",
		conditions: []condition{is("a", effectOut, second, forever)}, want: []string{"not-withdrawn a cannot serve 192.0.2.5 (a test)"}},
	{name: "a loses its power while BFD is broken", a: []span{has("a", 0, 11*second)},
		conditions: []condition{is("a", effectUnwatched, second, 3*second), is("a", effectOut, 2*second, forever)}, lost: []span{during(8*second, 8200*ms)}, now: 13 * second},
	{name: "a's HAProxy hangs, which takes time to notice",
		a: []span{has("a", 0, 3300*ms)}, conditions: []condition{unfit("a", v1alpha1.GroupAPI, 2250*ms, second, forever)}, lost: []span{during(second, 1400*ms), during(2*second, 2500*ms)}},
	{name: "a's HAProxy hangs, and nothing notices",
		conditions: []condition{unfit("a", v1alpha1.GroupAPI, 2250*ms, second, forever)}, lost: []span{during(5*second, 5200*ms)},
		want: []string{"lost-request a request to 192.0.2.5 is lost: no answer", "not-withdrawn a cannot serve"}},
	{name: "c's HAProxy hangs, and its rack has no other node", conditions: []condition{unfit("c", v1alpha1.GroupAPI, 2250*ms, second, forever)}},
	{name: "c's HAProxy and API server hang, and its rack has no other node",
		conditions: []condition{unfit("c", v1alpha1.GroupAPI, 2250*ms, second, forever), is("c", effectNoAPI, second, forever)}, want: []string{"not-withdrawn c cannot serve"}},
	{name: "a session is away, and opens again", a: []span{has("a", 0, second), has("a", 5*second, forever)}},
	{name: "a is back, and announces nothing", a: []span{}, conditions: []condition{is("a", effectUnsure, 0, 2*second)}, now: 13 * second,
		want: []string{"not-routed a can serve 192.0.2.5, and its router sends it nothing"}},
	{name: "a leaves as planned", a: []span{has("a", 0, 2*second)}, conditions: []condition{is("a", effectLeaving, second, forever)}},
	{name: "a leaves as planned, and requests are lost", a: []span{has("a", 0, 3*second)}, conditions: []condition{is("a", effectLeaving, second, forever)},
		lost: []span{during(2*second, 2200*ms)}, want: []string{"lost-request"}},
	{name: "routers move a connection that is open", a: []span{has("a", 0, 2050*ms)}, conditions: []condition{is("a", effectLeaving, second, forever)},
		lost: []span{during(2*second, 2100*ms)}},
	{name: "no request is answered for too long", conditions: []condition{is("b", effectUnsure, 2*second, 5*second)}, lost: []span{during(2*second, 3*second)},
		want: []string{"no-answer no request to 192.0.2.5 is answered"}},
	{name: "requests in a row meet a dead router", conditions: []condition{is("b", effectUnwatched, 2*second, 5*second)}, lost: []span{during(2*second, 3*second)}},
	{name: "requests in a row meet frozen API servers", conditions: []condition{is("b", effectNoAPI, 2*second, 9*second)}, lost: []span{during(2*second, 3*second)}},
	{name: "requests meet an API server that froze long ago", conditions: []condition{is("b", effectNoAPI, second, 12*second)}, lost: []span{during(9*second, 10*second)},
		want: []string{"no-answer no request to 192.0.2.5 is answered"}},
	{name: "a request is lost, and nothing happened", lost: []span{during(2*second, 2100*ms)}, want: []string{"lost-request"}},
	{name: "requests are lost after this machine was late for longer than BFD waits", stalls: []stall{{1900 * ms, 150 * ms}}, lost: []span{during(2*second, 2100*ms)}},
	{name: "no API server: nodes announce nevertheless", conditions: []condition{is("a", effectNoAPI, second, forever), is("b", effectNoAPI, second, forever), is("c", effectNoAPI, second, forever)},
		lost: []span{during(second, 8*second)}},
}

func TestRoutedStories(t *testing.T) {
	for _, x := range routedStories {
		t.Run(x.name, func(t *testing.T) {
			s := story{now: x.now, want: x.want, conditions: x.conditions, stalls: x.stalls, api: append(x.a, has("b", 0, forever), has("c", 0, forever)), ingress: []span{has("r", 0, forever), has("s", 0, forever)}}
			if x.a == nil {
				s.api = append(s.api, has("a", -9*second, forever))
			}
			h := s.history()
			h.Requests = answers(x.lost...)
			s.judge(t, h, routedBounds)
		})
	}
}

// The cluster with VIPs by BGP has nodes in two racks, bounds from its settings, and its own faults; one rack stays as it is
// in two of three rounds.
func TestRacks(t *testing.T) {
	c, err := lab.Racks()
	testkit.Must(t, err)
	prepare := func(k ...Kind) (*Prepared, error) {
		return Prepare(&Config{Cluster: c, Seed: 1, Duration: time.Hour, Limits: Limits{Kinds: k, AtOnce: DefaultAtOnce}})
	}
	p, err := prepare()
	testkit.Must(t, err)
	testkit.Equal(t, 150*ms, p.Bounds.Detect)
	testkit.Equal(t, 9*second, p.Bounds.Hold)
	testkit.Equal(t, session, p.Bounds.election())
	happened := map[Kind]int{}
	for _, r := range p.Schedule {
		for _, f := range r.Faults {
			happened[f.Kind]++
			if f.What == "keepalived" || f.Kind == killDaemon && !slices.Equal(f.Nodes, []int{0, 2, 4}) && !slices.Equal(f.Nodes, []int{1, 3}) {
				t.Errorf("round %d: %s", r.Number, f.text(p.Names))
			}
		}
	}
	for _, k := range Kinds() {
		if (happened[k] > 0) != slices.Contains(routedKinds, k) {
			t.Errorf("%s happens %d times in an hour", k, happened[k])
		}
	}
	_, err = prepare(killKeepalived)
	testkit.Fails(t, err, "kill-keepalived")
}
