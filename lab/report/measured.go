package report

import (
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// Measured returns a run out of what a client got and who was seen to hold the
// VIPs, both counted from the same start. Who held a VIP is taken from the nodes'
// addresses; split brain is looked for from both sides, for no shorter than that.
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
