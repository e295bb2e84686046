package keepalived

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

var compareEvents = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}

// Lines logged by keepalived 2.2.7, and the events that are recorded for them.
func TestLogLines(t *testing.T) {
	const now = "Mon Nov  3 06:22:17 2025: "
	four, six := netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("2001:db8::c")
	for line, want := range map[string]events.Event{
		now + "(demo_API_0) Entering BACKUP STATE (init)":                                                         {Kind: events.State, Instance: "demo_API_0", State: events.Backup},
		now + "(demo_API_0) Entering MASTER STATE":                                                                {Kind: events.State, Instance: "demo_API_0", State: events.Master},
		"(demo_API_0) Entering FAULT STATE":                                                                       {Kind: events.State, Instance: "demo_API_0", State: events.Fault},
		now + "(demo_API_0) Receive advertisement timeout":                                                        {Kind: events.SilentHolder, Instance: "demo_API_0"},
		now + "(a) Backup received priority 0 advertisement":                                                      {Kind: events.HolderStops, Instance: "a"},
		now + "(a) sent 0 priority":                                                                               {Kind: events.StoppedSending, Instance: "a"},
		now + "(a) Changing effective priority from 68 to 48":                                                     {Kind: events.Effective, Instance: "a", Own: 68, Priority: 48},
		now + "(a) received lower priority (48) advert from 192.0.2.12 - discarding":                              {Kind: events.LowerReceived, Instance: "a", Priority: 48, Peer: four},
		now + "(a) Received advert from 2001:db8::c with lower priority 67, ours 68, forcing new election":        {Kind: events.LowerReceived, Instance: "a", Priority: 67, Own: 68, Peer: six},
		now + "(a) Master received advert from 192.0.2.12 with higher priority 68, ours 48":                       {Kind: events.HigherReceived, Instance: "a", Priority: 68, Own: 48, Peer: four},
		now + "(a) Master received advert from 2001:db8::c with same priority 68 but higher IP address than ours": {Kind: events.HigherReceived, Instance: "a", Priority: 68, Own: 68, Peer: six},
		now + "Netlink reports eth0 down":                                                                         {Kind: events.Link, Interface: "eth0", State: events.Down},
		now + "A thread timer expired 1.994521 seconds ago":                                                       {Kind: events.Late, Name: "keepalived", For: 1994},
		now + "A thread timer expired 0.004521 seconds ago":                                                       {},
		now + "A thread timer expired soon":                                                                       {},
		now + "(a) setting VIPs.":                                                                                 {},
		now + "(a Entering MASTER STATE":                                                                          {},
		now + "(a) Entering NO STATE":                                                                             {},
		now + "Startup complete":                                                                                  {},
		now:                                                                                                       {},
		"":                                                                                                        {},
		"(":                                                                                                       {},
		"()":                                                                                                      {},
	} {
		if got, ok := parseLine([]byte(line + "\n")); ok != (want.Kind != "") || ok && !cmp.Equal(got, want, compareEvents) {
			t.Errorf("%s\ngot  %+v\nwant %+v", line, got, want)
		}
	}
}

// Log lines that keepalived repeats with every advertisement are recorded once, until the
// instance changes its state, or the peer was silent for a while. Its actions are
// recorded each time.
func TestRepeatedLogLines(t *testing.T) {
	const (
		low = "(a) received lower priority (48) advert from 192.0.2.12 - discarding"
		two = "(a) received lower priority (48) advert from 192.0.2.11 - discarding"
	)
	var l logLines
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, tt := range []struct {
		after time.Duration
		line  string
		want  bool
	}{
		{0, low, true},
		{time.Second, low, false},
		{0, two, true},
		{time.Second, low, false},
		{time.Second, low, false},
		{time.Second, low, false},
		{0, two, true},
		{0, "(b) received lower priority (48) advert from 192.0.2.12 - discarding", true},
		{0, "(a) received lower priority (40) advert from 192.0.2.12 - discarding", true},
		{0, "(a) Entering MASTER STATE", true},
		{0, low, true},
		{quietFor, low, true},
		{0, "(a) Changing effective priority from 68 to 48", true},
		{0, "(a) Changing effective priority from 48 to 68", true},
		{0, "(a) Changing effective priority from 68 to 48", true},
		{0, "(a) Entering BACKUP STATE", true},
		{0, "(a) Entering BACKUP STATE", true},
		{0, "A thread timer expired 1 seconds ago", true},
		{0, "A thread timer expired 1 seconds ago", true},
	} {
		now = now.Add(tt.after)
		if _, ok := l.event([]byte(tt.line), now); ok != tt.want {
			t.Errorf("line %d, %s: recorded: %v", i+1, tt.line, ok)
		}
	}
	for i := range 10 * maxReceived {
		l.event(fmt.Appendf(nil, "(a) received lower priority (%d) advert from 192.0.2.12 - discarding", i), now)
	}
	if len(l.received) > maxReceived {
		t.Errorf("%d are kept", len(l.received))
	}
}

// FuzzLogLines: a daemon may log anything.
func FuzzLogLines(f *testing.F) {
	f.Add([]byte("Mon Nov  3 06:22:17 2025: (a) Master received advert from 192.0.2.12 with higher priority 68, ours 48"))
	f.Add([]byte("A thread timer expired 1e300 seconds ago"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := parseLine(line); ok && (e.Kind == "" || e.For < 0 || e.Kind == events.Late && e.For.Duration() < leastLate-time.Millisecond) {
			t.Errorf("%+v", e)
		}
	})
}

// Each change of what the job publishes is one event; no change is none.
func TestChanges(t *testing.T) {
	vip, peer := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.12")
	fast, classic := v1alpha1.VRRPSettings{Profile: "fast"}, v1alpha1.VRRPSettings{Profile: "classic"}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := func() state.Keepalived {
		return state.Keepalived{Wanted: true, VRRP: &fast, Guard: state.Guard{InPlace: true}, Instances: []state.Instance{{
			Name: "a", VIP: vip, Interface: "eth0", Peers: []netip.Addr{peer}, Priority: 68, Base: 40,
			Terms: []state.Term{{Name: "lb-path", Points: 20, On: true}},
		}}}
	}
	about := events.Event{Instance: "a", VIP: vip}
	with := func(change func(*events.Event)) []events.Event { e := about; change(&e); return []events.Event{e} }
	for name, tt := range map[string]struct {
		change func(*state.Keepalived)
		want   []events.Event
	}{
		"none":                         {func(*state.Keepalived) {}, nil},
		"held, which is noted at once": {func(s *state.Keepalived) { s.Instances[0].Holds = true }, nil},
		"settings":                     {func(s *state.Keepalived) { s.VRRP = &classic }, []events.Event{{Kind: events.Settings, Settings: &classic}}},
		"left out":                     {func(s *state.Keepalived) { s.LeftOut = []string{"why"} }, []events.Event{{Kind: events.LeftOut, Reasons: []string{"why"}}}},
		"stopped":                      {func(s *state.Keepalived) { s.Wanted = false }, []events.Event{{Kind: events.KeepalivedStopped}}},
		"refused":                      {func(s *state.Keepalived) { s.Problem = "no\nline 2" }, []events.Event{{Kind: events.Refused, Why: "no"}}},
		"unguarded":                    {func(s *state.Keepalived) { s.Guard.InPlace = false }, []events.Event{{Kind: events.Guard}}},
		"strangers":                    {func(s *state.Keepalived) { s.Guard.Dropped = []state.Dropped{{Packets: 2}, {Packets: 3}} }, []events.Event{{Kind: events.Strangers, Count: 5}}},
		"peers":                        {func(s *state.Keepalived) { s.Instances[0].Peers = nil }, with(func(e *events.Event) { e.Kind, e.Interface = events.Instance, "eth0" })},
		"holder": {func(s *state.Keepalived) {
			s.Instances[0].Holder = &state.Holder{Node: "b", Address: peer, Priority: 65}
		}, with(func(e *events.Event) { e.Kind, e.Name, e.Peer, e.Priority = events.Holder, "b", peer, 65 })},
		"priority": {func(s *state.Keepalived) { s.Instances[0].Priority, s.Instances[0].Terms[0].On = 48, false }, with(func(e *events.Event) {
			e.Kind, e.Priority, e.Own, e.OK, e.Terms = events.Priority, 48, 40, true, []events.Term{{Name: "lb-path", Points: 20}}
		})},
		"pending migration": {func(s *state.Keepalived) { s.Migration = &state.Migration{Target: classic, WaitsFor: "b"} }, []events.Event{{Kind: events.Migration, State: events.Pending, Settings: &classic}}},
		"agreed migration":  {func(s *state.Keepalived) { s.Migration = &state.Migration{Target: classic, At: at, Agreed: true} }, []events.Event{{Kind: events.Migration, State: events.Agreed, Settings: &classic, At: at}}},
		"moving": {func(s *state.Keepalived) {
			s.Migration = &state.Migration{Target: classic, At: at, Agreed: true, Migrating: true}
		}, []events.Event{{Kind: events.Migration, State: events.Migrating, Settings: &classic, At: at}}},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := base(), base()
			tt.change(&now)
			testkit.Equal(t, tt.want, changes(&before, &now), compareEvents)
		})
	}
	before, now := base(), base()
	before.Migration = &state.Migration{Target: classic, At: at, Agreed: true, Migrating: true}
	want := []events.Event{{Kind: events.Migration, State: events.Over, Settings: &classic}}
	testkit.Equal(t, want, changes(&before, &now), compareEvents)
}

func TestThrottledStatistic(t *testing.T) {
	const stat = "usage_usec 5\nnr_throttled 3\nthrottled_usec 1200\n"
	if n, ok := statistic([]byte(stat), "throttled_usec "); n != 1200 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	for _, key := range []string{"throttled_time ", "usec "} {
		if n, ok := statistic([]byte(stat), key); ok {
			t.Errorf("%s: %d", key, n)
		}
	}
}

// TestHoldings: the counters of a VIP belong to this node alone, and continue when it returns.
func TestHoldings(t *testing.T) {
	vip, other, own := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.10")
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	vips := []netip.Addr{vip, other}
	var h holdings
	if h.nodeAddresses() != nil {
		t.Error("addresses before they are known")
	}
	for _, step := range []struct {
		at        int
		addresses []netip.Addr
		acquired  bool
	}{
		{0, []netip.Addr{own}, false},
		{10, []netip.Addr{own, vip}, true},
		{15, []netip.Addr{own, vip}, false},
		{40, []netip.Addr{own}, false},
		{50, []netip.Addr{own, vip}, true},
	} {
		if _, acquired := h.observe(at(step.at), vips, step.addresses); slices.Contains(acquired, vip) != step.acquired || slices.Contains(acquired, own) {
			t.Errorf("after %d s: acquired %v", step.at, acquired)
		}
	}
	if taken, lost, held := h.counts(vip, at(55)); taken != 2 || lost != 1 || held != 35*time.Second {
		t.Errorf("taken %d, lost %d, held for %v", taken, lost, held)
	}
	if taken, lost, held := h.counts(other, at(55)); taken != 0 || lost != 0 || held != 0 {
		t.Errorf("taken %d, lost %d, held for %v", taken, lost, held)
	}
	if since, held := h.heldSince(vip); !held || !since.Equal(at(50)) {
		t.Errorf("held %t since %v", held, since)
	}
	if since, held := h.heldSince(own); !held || !since.Equal(at(0)) {
		t.Errorf("held %t since %v", held, since)
	}
	h.observe(at(60), vips[1:], []netip.Addr{own, vip})
	if taken, _, _ := h.counts(vip, at(60)); taken != 0 {
		t.Error("an address that is no VIP any more is counted")
	}
}
