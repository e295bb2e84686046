package bench

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/lab/report"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// crossing is more than an advertisement needs from one node to another, and less than a client
// notices: during a failover two nodes may have a VIP for that long.
const crossing = 10 * time.Millisecond

// result stops the probes and the watch, and returns the run.
func (r *run) result() report.Run {
	r.endClients()
	seen := r.probe.End()
	timeline, _ := r.watch.End() // close returns the error
	var mine watch.Timeline
	for _, s := range timeline {
		if s.VIP == r.vip {
			mine = append(mine, s)
		}
	}
	out := report.Measured(seen, mine, r.fault, crossing)
	out.Events, out.Clients, out.Others = r.events, r.clientsReport(), r.othersReport()
	if r.scenario.NewVIP {
		out.Outage = max(out.Outage, firstAnswer(seen)-out.Fault)
	}
	if spells := seen.Spells(); len(spells) > 0 && !spells[len(spells)-1].OK {
		out.Events = append(out.Events, report.Event{At: spells[len(spells)-1].To, Text: "the client has given up"})
	}
	if at := r.healed; at > 0 {
		out.SplitBrain = overlap(mine, at)
		out.Events = append(out.Events, report.Event{At: at, Text: fmt.Sprintf("split brain: %v since the partition began, %v since it healed",
			round(overlap(mine, 0)), round(out.SplitBrain))})
	}
	if r.held != nil {
		held := r.held.End()
		out.Lost += held.Broken()
		out.Events = append(out.Events, report.Event{At: r.now(), Text: heldWords(held)})
	}
	if n := moves(mine); n > 0 {
		out.Events = append(out.Events, report.Event{At: r.now(), Text: fmt.Sprintf("changes of the holder: %d", n)})
	}
	return out
}

// firstAnswer returns the time of the first answer. A request to an address that no node has yet is
// not lost but answered late if the address appears soon enough: the kernel queues packets until
// the link address is resolved.
func firstAnswer(seen probe.Result) (first time.Duration) {
	for _, q := range seen.Requests {
		if q.Err == "" && (first == 0 || q.Ended < first) {
			first = q.Ended
		}
	}
	return first
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func heldWords(h probe.HoldResult) string {
	return fmt.Sprintf("of %d open connections: %d refused, %d reset, %d closed, %d without an answer in time, %d otherwise; %d requests were answered",
		h.Connections, h.Refused, h.Reset, h.Closed, h.Unanswered, h.Other, h.Answered)
}

// overlap returns the longest time, from a time on, in which two nodes held a VIP, in either view.
func overlap(t watch.Timeline, from time.Duration) (longest time.Duration) {
	for _, o := range t.Overlaps(crossing) {
		if length := o.To - max(o.From, from); length >= crossing {
			longest = max(longest, length)
		}
	}
	return longest
}

// moves returns the number of times that VIPs moved to another node.
func moves(t watch.Timeline) (count int) {
	last := map[netip.Addr]string{}
	for _, s := range t.In(watch.Addresses) {
		if last[s.VIP] != "" && last[s.VIP] != s.Node {
			count++
		}
		last[s.VIP] = s.Node
	}
	return count
}
