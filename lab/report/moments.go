package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// mostMoments is the maximum number of moments listed for a run; a VIP that flaps may have
// hundreds.
const mostMoments = 16

// moments returns the main events of a run, sorted: its own events, and from the fault on the
// changes of the holder and the client's outages.
func moments(vip string, run Run) []Event {
	all := slices.Clone(run.Events)
	var end time.Duration
	for _, s := range run.Spans {
		end = max(end, s.To)
	}
	add := func(at time.Duration, text string) {
		if at >= run.Fault {
			all = append(all, Event{At: at, Text: text})
		}
	}
	for _, s := range run.Spans {
		if s.VIP != vip {
			continue
		}
		add(s.From, s.Node+" has the VIP")
		if s.To < end {
			add(s.To, s.Node+" no longer has the VIP")
		}
	}
	for i, a := range run.Answers {
		switch {
		case !a.OK:
			add(a.From, "the client gets no answer")
		case i > 0 && !run.Answers[i-1].OK:
			add(a.From, "the client gets answers again")
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	if more := len(all) - mostMoments; more > 0 {
		all = append(all[:mostMoments], Event{At: all[mostMoments].At, Text: fmt.Sprintf("and %d more from here on", more)})
	}
	return all
}
