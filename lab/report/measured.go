package report

import (
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// Measured returns a run from a client's requests and a timeline of the VIPs, both relative to the
// same start. Holders are taken from the nodes' addresses; split brains of at least the shortest
// time are taken from both views.
func Measured(r probe.Result, t watch.Timeline, fault, shortest time.Duration) Run {
	run := Run{
		Run:     timeline.Run{SplitBrain: t.SplitBrain(shortest), Fault: fault},
		Outage:  r.Outage(),
		Lost:    r.Lost(),
		Asked:   len(r.Requests),
		Slowest: r.Slowest(),
		Pause:   r.Pause(),
	}
	for _, s := range t.In(watch.Addresses) {
		run.Spans = append(run.Spans, Span{VIP: s.VIP.String(), Node: s.Node, From: s.From, To: s.To})
	}
	spells := r.Spells()
	for i, s := range spells {
		a := Answer{From: s.From, To: s.To, OK: s.OK}
		if i+1 < len(spells) {
			a.To = spells[i+1].From
		}
		run.Answers = append(run.Answers, a)
	}
	return run
}
