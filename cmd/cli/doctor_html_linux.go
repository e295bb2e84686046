package cli

import (
	"io"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/lab/report"
)

// doctorPage writes a diagnosis as a page, with timelines.
func doctorPage(to io.Writer, r *doctor.Report, files []doctor.File) error {
	p := &report.MovesPage{Notes: append([]string{doctorSummary(r)}, doctorNotes(r, files)...)}
	for _, n := range r.Nodes {
		p.Facts = append(p.Facts, report.Fact{Name: n.Name, Value: plural(n.Events, "event")})
	}
	for i := range r.Moves {
		p.Moves = append(p.Moves, pageMove(&r.Moves[i]))
	}
	return p.WriteHTML(to)
}

// aroundMove is how much of what was before and after a move is drawn.
const aroundMove = 2 * time.Second

func pageMove(m *doctor.Move) report.Move {
	out := report.Move{
		Time: m.At.Format(moment), VIPs: moved(m), From: holderNames(m.From), To: nextHolders(m),
		Cause: m.Cause.Text, Sure: string(m.Cause.Sure), Or: m.Cause.Or, Next: m.Cause.Next, Unheld: m.Unheld.Duration(), Timelines: m.Instances,
	}
	begin := m.At.Add(-aroundMove)
	since := func(t time.Time) time.Duration { return t.Sub(begin) }
	run := report.Run{NoClient: true, Fault: aroundMove, SplitBrain: m.SplitBrain.Duration()}
	end := m.At
	for _, e := range m.Evidence {
		run.Events = append(run.Events, report.Event{At: since(e.At), Text: e.Node + ": " + e.Text})
		end = latest(end, e.At)
	}
	for _, h := range m.Holdings {
		if !h.To.IsZero() {
			end = latest(end, h.To)
		}
		end = latest(end, h.From)
	}
	for _, h := range m.Holdings {
		to := h.To
		if to.IsZero() {
			to = end.Add(aroundMove)
		}
		run.Spans = append(run.Spans, report.Span{VIP: h.Instance, Node: h.Node, From: since(h.From), To: since(to)})
	}
	slices.SortStableFunc(run.Events, func(a, b report.Event) int { return int(a.At - b.At) })
	out.Run = run
	return out
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
