package doctor

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// epoch is when scripts begin.
var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var addresses = map[string]netip.Addr{
	"a": netip.MustParseAddr("192.0.2.10"), "b": netip.MustParseAddr("192.0.2.11"), "c": netip.MustParseAddr("192.0.2.12"),
	"vip": netip.MustParseAddr("192.0.2.5"), "x": netip.MustParseAddr("192.0.2.66"),
}

// nodes are three nodes that know each other, from second 0, with the profile fast.
const nodes = `
0 a agent-started boot
0 b agent-started boot
0 c agent-started boot
0 a settings fast
0 b settings fast
0 c settings fast
0 a instance b c
0 b instance a c
0 c instance a b
`

// holding makes a the holder of the VIP.
const holding = nodes + `
1 a state MASTER
1 b state BACKUP
1 c state BACKUP
1 a held
`

// play returns the events of a script: a line has the second, the node, the kind, and the
// fields of that kind; at its end, "delay" and "missed" of the event.
func play(t testing.TB, script string) (list []events.Event) {
	t.Helper()
	seq := map[string]uint64{}
	runs := map[string]time.Duration{} // since when each agent has run without a delay
	for line := range strings.Lines(script) {
		word := strings.Fields(line)
		if len(word) < 3 {
			continue
		}
		second, err := strconv.ParseFloat(word[0], 64)
		testkit.Must(testkit.In(t, line), err)
		node, rest := word[1], word[3:]
		option := map[string]int{}
		for len(rest) > 0 {
			name, value, found := strings.Cut(rest[len(rest)-1], "=")
			n, err := strconv.Atoi(value)
			if !found || err != nil {
				break
			}
			option[name], rest = n, rest[:len(rest)-1]
		}
		seq[node]++
		after := time.Duration(second * float64(time.Second)).Round(time.Millisecond)
		e := events.Event{
			Seq: seq[node], Boot: "boot-" + node, Up: 100_000 + events.MillisOf(after), Time: epoch.Add(after),
			Node: node, Kind: events.Kind(word[2]),
		}
		more(t, &e, rest)
		if e.Kind == events.AgentStarted || e.Kind == events.Late && e.Name == "agent" {
			runs[node] = after
		}
		e.OnTime = events.MillisOf(max(after-runs[node], 0))
		e.Missed = uint64(option["missed"])
		if e.Delay = events.Millis(option["delay"]); e.Delay > 0 {
			e.OnTime, runs[node] = 0, after
		}
		list = append(list, e)
	}
	return list
}

func more(t testing.TB, e *events.Event, rest []string) {
	t.Helper()
	at := func(i int) string {
		if i < len(rest) {
			return rest[i]
		}
		return ""
	}
	number := func(i int) int { n, _ := strconv.Atoi(at(i)); return n }
	switch e.Kind {
	case events.State, events.SilentHolder, events.HolderStops, events.StoppedSending, events.HigherReceived, events.LowerReceived, events.Effective,
		events.Held, events.Lost, events.Instance, events.Holder, events.Priority:
		e.Instance = "demo_API_0"
	}
	switch e.Kind {
	case events.AgentStopped:
		e.Why = strings.Join(rest, " ")
	case events.AgentStarted:
		e.First = at(0) == "boot"
	case events.State:
		e.State = at(0)
	case events.Settings, events.Migration:
		e.Settings = &v1alpha1.VRRPSettings{Profile: v1alpha1.Profile(at(0)), Mode: "unicast", Version: 3, AdvertIntervalMS: 40}
		if at(0) == "classic" {
			e.Settings.Version, e.Settings.AdvertIntervalMS = 2, 1000
		}
		e.State = at(1)
	case events.Instance:
		e.VIP, e.Source, e.Interface = addresses["vip"], addresses[e.Node], "eth0"
		for _, p := range rest {
			e.Peers = append(e.Peers, addresses[p])
		}
	case events.Held, events.Lost:
		e.VIP = addresses["vip"]
	case events.HigherReceived, events.LowerReceived:
		e.Peer, e.Priority, e.Own = addresses[at(0)], number(1), number(2)
	case events.Holder:
		e.Peer, e.Name = addresses[at(0)], at(1)
	case events.Priority:
		e.Terms = []events.Term{{Name: at(0), Points: 20, On: true}}
	case events.Effective:
		e.Own, e.Priority = number(0), number(1)
	case events.Check:
		e.Name, e.OK, e.Why = at(0), at(1) == "ok", strings.Join(rest[1:], " ")
	case events.Link:
		e.Interface, e.State = "eth0", at(0)
	case events.Announced:
		e.VIP, e.Instance, e.State, e.OK, e.Priority, e.Why = addresses["vip"], addresses["vip"].String(), "bgp", at(0) != "no", number(0), strings.Join(rest[min(1, len(rest)):], " ")
	case events.Session:
		e.Peer, e.Name, e.OK, e.State, e.Why = addresses["x"], addresses["x"].String(), at(0) == "established", at(0), strings.Join(rest[min(1, len(rest)):], " ")
	case events.LeftOut:
		e.Reasons = []string{strings.Join(rest, " ")}
	case events.Late, events.Throttled:
		e.Name, e.For = at(0), events.Millis(number(1))
	}
}

// brief summarises a move: nodes, cause, and the outage for clients.
func brief(m *Move) string {
	to := strings.Join(m.To, "+")
	if len(m.Meanwhile) > 0 {
		to += "(" + strings.Join(m.Meanwhile, "+") + ")"
	}
	return fmt.Sprintf("%s>%s %s %s unheld %d split %d", strings.Join(m.From, "+"), to, m.Cause.Code, m.Cause.Sure, m.Unheld, m.SplitBrain)
}
