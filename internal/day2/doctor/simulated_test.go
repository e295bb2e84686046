package doctor

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
)

// simulated is a cluster of three nodes with realistic records: late where the machine is busy,
// by clocks that differ. Times are since epoch.
type simulated struct {
	rand   *rand.Rand
	now    time.Duration
	nodes  []*simulatedNode
	holder *simulatedNode
	busy   time.Duration // maximum delay of agents
}

type simulatedNode struct {
	name   string
	ahead  time.Duration // of its clock
	events []scheduled
}

// scheduled is an event to record, or the end of a run if it has no kind: events that are not
// recorded by then are lost.
type scheduled struct {
	at time.Duration
	e  events.Event
}

var instances = []string{"demo_API_0", "demo_API_1"}

func newSimulated(seed uint64, busy time.Duration) *simulated {
	s := &simulated{rand: rand.New(rand.NewPCG(seed, 1)), busy: busy}
	for _, name := range []string{"a", "b", "c"} {
		s.nodes = append(s.nodes, &simulatedNode{name: name, ahead: s.upTo(200 * time.Millisecond)})
	}
	for _, n := range s.nodes {
		s.start(n, 0, true)
	}
	s.holder = s.nodes[0]
	s.each(s.holder, time.Second, events.Event{Kind: events.State, State: events.Master})
	s.now = 5 * time.Second
	return s
}

func (s *simulated) upTo(d time.Duration) time.Duration {
	return time.Duration(s.rand.Int64N(int64(max(d, 1))))
}

func (s *simulated) addressOf(n *simulatedNode, instance string) events.Event {
	e := events.Event{Instance: instance, Peer: addresses[n.name]}
	if instance == instances[1] {
		e.Peer = addresses6[n.name]
	}
	return e
}

// schedule schedules an event.
func (s *simulated) schedule(n *simulatedNode, at time.Duration, e events.Event) {
	n.events = append(n.events, scheduled{at, e})
}

// ends kills a node's agent.
func (s *simulated) ends(n *simulatedNode, at time.Duration) { s.schedule(n, at, events.Event{}) }

// recorded returns the nodes' records.
func (s *simulated) recorded() (list []events.Event) {
	for _, n := range s.nodes {
		slices.SortStableFunc(n.events, func(a, b scheduled) int { return cmp.Compare(a.at, b.at) })
		list = append(list, s.recordOf(n)...)
	}
	return list
}

func (s *simulated) recordOf(n *simulatedNode) (list []events.Event) {
	var since, until time.Duration // on time since then; nothing is recorded before until
	boot, booted := 0, -100*time.Second
	write := func(at time.Duration, e events.Event) {
		e.Seq, e.Boot, e.Node = uint64(len(list)+1), fmt.Sprint(n.name, boot), n.name
		e.Up, e.Time = events.MillisOf(at-booted), epoch.Add(at+n.ahead)
		list = append(list, e)
	}
	for i, h := range n.events {
		if h.e.Kind == "" {
			continue
		}
		if h.e.Kind == events.AgentStarted {
			if since, until = h.at, h.at; h.e.First {
				boot, booted = boot+1, h.at-time.Second
			}
		}
		e, noted := h.e, max(h.at+s.upTo(5*time.Millisecond), until)
		if e.Kind == events.Late && e.Name == "agent" { // it records the delay as soon as it runs
			since = h.at
		} else if s.busy > 0 && h.e.Kind != events.AgentStarted && s.rand.IntN(4) == 0 {
			noted = max(noted, h.at+s.upTo(s.busy))
		}
		gone := slices.IndexFunc(n.events[i:], func(o scheduled) bool { return o.e.Kind == "" })
		if gone >= 0 && n.events[i+gone].at <= noted {
			continue
		}
		if late := noted - max(h.at, until); late >= events.LateFrom {
			since = noted
			write(noted, events.Event{Kind: events.Late, Name: "agent", For: events.MillisOf(late)})
		}
		if until = noted; noted-h.at >= events.LateFrom {
			e.Delay = max(e.Delay, events.MillisOf(noted-h.at))
		}
		if e.Delay == 0 {
			e.OnTime = events.MillisOf(max(noted-since, 0))
		}
		write(noted, e)
	}
	return list
}

// each records an event for each instance.
func (s *simulated) each(n *simulatedNode, at time.Duration, e events.Event) {
	for _, i := range instances {
		e.Instance = i
		s.schedule(n, at, e)
	}
}

func (s *simulated) start(n *simulatedNode, at time.Duration, boot bool) {
	s.schedule(n, at, events.Event{Kind: events.AgentStarted, First: boot})
	s.schedule(n, at, events.Event{Kind: events.Settings, Settings: &v1alpha1.VRRPSettings{Profile: "fast", Mode: "unicast", Version: 3, AdvertIntervalMS: 40}})
	for _, i := range instances {
		e := events.Event{Kind: events.Instance, Instance: i, Interface: "eth0", VIP: addresses["vip"], Source: s.addressOf(n, i).Peer}
		for _, o := range s.nodes {
			if o != n {
				e.Peers = append(e.Peers, s.addressOf(o, i).Peer)
			}
		}
		s.schedule(n, at, e)
	}
	s.each(n, at+100*time.Millisecond, events.Event{Kind: events.State, State: events.Backup})
}

// elect makes the other nodes miss advertisements from a moment on: all of them take the VIP,
// and the one with the highest address keeps it.
func (s *simulated) elect(missing time.Duration, without *simulatedNode) (won *simulatedNode, at time.Duration) {
	var took []*simulatedNode
	for _, n := range s.nodes {
		if n != without {
			took = append(took, n)
		}
	}
	at = missing + 150*time.Millisecond + s.upTo(10*time.Millisecond)
	won = took[len(took)-1]
	for _, i := range instances {
		for _, n := range took {
			if n != won && s.rand.IntN(3) == 0 {
				continue // it has received the winner's advertisements before
			}
			s.schedule(n, at, events.Event{Kind: events.SilentHolder, Instance: i})
			s.schedule(n, at, events.Event{Kind: events.State, Instance: i, State: events.Master})
			if n != won {
				s.yields(n, won, i, at+5*time.Millisecond, 68)
				s.receivesLower(won, n, i, at+5*time.Millisecond, 68)
			}
		}
	}
	return won, at
}

func (s *simulated) yields(n, to *simulatedNode, instance string, at time.Duration, own int) {
	e := s.addressOf(to, instance)
	e.Kind, e.Priority, e.Own = events.HigherHeard, 68, own
	s.schedule(n, at, e)
	s.schedule(n, at, events.Event{Kind: events.State, Instance: instance, State: events.Backup})
}

func (s *simulated) receivesLower(n, from *simulatedNode, instance string, at time.Duration, priority int) {
	e := s.addressOf(from, instance)
	if e.Kind, e.Priority = events.LowerHeard, priority; priority == 68 {
		e.Own = 68
	}
	s.schedule(n, at, e)
}

// meet ends a split brain: from a moment on its nodes receive each other's advertisements.
func (s *simulated) meet(a, b *simulatedNode, at time.Duration) {
	low, high := a, b
	if slices.Index(s.nodes, a) > slices.Index(s.nodes, b) {
		low, high = b, a
	}
	for _, i := range instances {
		s.receivesLower(high, low, i, at, 68)
		s.yields(low, high, i, at, 68)
	}
	s.holder = high
}

// simulatedFaults are the faults of the lab's test, as nodes recorded them there.
var simulatedFaults = []struct {
	name string
	do   func(*simulated, *simulatedNode)
	want Code
}{
	{"keepalived is killed", func(s *simulated, h *simulatedNode) {
		s.schedule(h, s.now, events.Event{Kind: events.KeepalivedDied})
		s.each(h, s.now+100*time.Millisecond, events.Event{Kind: events.Lost})
		s.holder, _ = s.elect(s.now, h)
		s.schedule(h, s.now+300*time.Millisecond, events.Event{Kind: events.KeepalivedStarting})
		s.each(h, s.now+500*time.Millisecond, events.Event{Kind: events.State, State: events.Backup})
	}, KeepalivedDied},
	{"HAProxy is stopped", func(s *simulated, h *simulatedNode) {
		s.schedule(h, s.now, events.Event{Kind: events.Check, Name: "redirect", Why: "the firewall job has not placed it"})
		s.each(h, s.now+time.Millisecond, events.Event{Kind: events.Effective, Own: 68, Priority: 48})
		s.yieldsBy(h, 48)
		s.schedule(h, s.now+500*time.Millisecond+s.upTo(time.Second), events.Event{Kind: events.Check, Name: "haproxy", Why: "connection refused"})
		s.each(h, s.now+3*time.Second, events.Event{Kind: events.Effective, Own: 48, Priority: 68})
		s.schedule(h, s.now+3*time.Second, events.Event{Kind: events.Check, Name: "haproxy", OK: true})
	}, HAProxyDown},
	{"the API server does not answer, but HAProxy does", func(s *simulated, h *simulatedNode) {
		s.schedule(h, s.now, events.Event{Kind: events.Check, Name: "api", Why: "timeout"})
		s.schedule(h, s.now+time.Second, events.Event{Kind: events.Check, Name: "api", OK: true})
	}, ""},
	{"the network is cut", func(s *simulated, h *simulatedNode) {
		won, at := s.elect(s.now, h)
		s.meet(h, won, at+2*time.Second)
	}, CutOff},
	{"the link is down", func(s *simulated, h *simulatedNode) {
		s.schedule(h, s.now, events.Event{Kind: events.Link, Interface: "eth0", State: events.Down})
		s.each(h, s.now, events.Event{Kind: events.State, State: events.Fault})
		s.holder, _ = s.elect(s.now, h)
		s.schedule(h, s.now+time.Second, events.Event{Kind: events.LeftOut, Reasons: []string{"no address of the family"}})
		s.schedule(h, s.now+3*time.Second, events.Event{Kind: events.Link, Interface: "eth0", State: events.Up})
		s.each(h, s.now+3*time.Second, events.Event{Kind: events.State, State: events.Backup})
	}, LinkLost},
	{"the node stands still", func(s *simulated, h *simulatedNode) {
		const still = 2 * time.Second
		won, _ := s.elect(s.now, h)
		wakes := s.now + still
		// The agent reads old advertisements first, and considers them current.
		s.schedule(h, wakes, events.Event{Kind: events.Late, Name: "keepalived", For: 1980, Delay: 1900})
		s.schedule(h, wakes, events.Event{Kind: events.Late, Name: "agent", For: 1900})
		s.meet(h, won, wakes)
	}, NodeLate},
	{"the pod is stopped", func(s *simulated, h *simulatedNode) {
		s.schedule(h, s.now, events.Event{Kind: events.AgentStopping})
		s.each(h, s.now+time.Millisecond, events.Event{Kind: events.Effective, Own: 68, Priority: 40})
		s.yieldsBy(h, 40)
		s.schedule(h, s.now+2*time.Second, events.Event{Kind: events.AgentStopped})
		s.start(h, s.now+3*time.Second, false)
	}, AgentStopped},
	{"the agent is killed", func(s *simulated, h *simulatedNode) {
		s.ends(h, s.now)
		s.start(h, s.now+30*time.Millisecond+s.upTo(300*time.Millisecond), false)
		s.holder, _ = s.elect(s.now, h)
	}, AgentKilled},
	{"power loss", func(s *simulated, h *simulatedNode) {
		s.holder, _ = s.elect(s.now, h)
		s.ends(h, s.now)
		s.start(h, s.now+2*time.Second, true)
	}, NodeDown},
}

// yieldsBy makes the other nodes have a higher priority than the holder from now on.
func (s *simulated) yieldsBy(h *simulatedNode, priority int) {
	for _, n := range s.nodes {
		if n != h {
			for _, i := range instances {
				s.receivesLower(n, h, i, s.now+30*time.Millisecond, priority)
			}
		}
	}
	won, at := s.elect(s.now-30*time.Millisecond, h)
	for _, i := range instances {
		s.yields(h, won, i, at+2*time.Millisecond, priority)
	}
	s.holder = won
}

// 50 faults in succession, on idle or busy machines: at least 48 causes are named, and no wrong
// one is certain, even if agents are late by the duration of a fault, and one clock differs.
func TestManyFaults(t *testing.T) {
	for _, tt := range []struct {
		busy, ahead time.Duration
		least       int
	}{
		{0, 0, 48},
		{300 * time.Millisecond, 0, 48},
		{time.Second, 0, 48},
		{2 * time.Second, 0, 40},
		{300 * time.Millisecond, 7300 * time.Millisecond, 45},
		{300 * time.Millisecond, -time.Minute, 45},
		{time.Second, -time.Minute, 0}, // too little evidence of the clock
	} {
		t.Run(fmt.Sprint(tt.busy, " late, ", tt.ahead, " ahead"), func(t *testing.T) {
			for seed := range uint64(10) {
				s := newSimulated(seed, tt.busy)
				s.nodes[1].ahead += tt.ahead
				s.run(t, 50, tt.least, tt.ahead)
			}
		})
	}
}

func (s *simulated) run(t *testing.T, n, least int, ahead time.Duration) {
	t.Helper()
	type events struct {
		fault    int
		node     string
		from, to time.Time
	}
	var done []events
	for range n {
		i := s.rand.IntN(len(simulatedFaults))
		h := s.holder
		from := epoch.Add(s.now)
		simulatedFaults[i].do(s, h)
		s.now += 10*time.Second + s.upTo(time.Second)
		done = append(done, events{i, h.name, from, epoch.Add(s.now)})
	}
	r := Diagnose(s.recorded())
	if len(r.Clocks) > 0 && ahead == 0 || ahead != 0 && least > 0 && (len(r.Clocks) != 1 || (r.Clocks[0].Ahead.Duration()-ahead).Abs() > time.Second) {
		t.Errorf("one clock is %v ahead: %+v", ahead, r.Clocks)
	}
	right := 0
	for _, d := range done {
		f, named, got := simulatedFaults[d.fault], false, ""
		for _, m := range r.Moves {
			if m.At.Before(d.from.Add(-2*time.Second)) || m.At.After(d.to.Add(-2*time.Second)) || !slices.Contains(m.From, d.node) {
				continue
			}
			got += brief(&m) + "; "
			named = named || m.Cause.Code == f.want
			if m.Cause.Code != f.want && m.Cause.Sure == Certain {
				t.Errorf("%s: %s: %s", d.node, f.name, brief(&m))
			}
		}
		if named || f.want == "" && got == "" {
			right++
		} else {
			t.Logf("%s at %v: %s: %s", d.node, d.from.Sub(epoch), f.name, got)
		}
	}
	if right < least {
		t.Errorf("%d of %d", right, n)
	}
}
