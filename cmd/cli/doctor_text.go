package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/doctor"
	"github.com/vipgen/vipgen/lab/report"
)

// moment is how times of events are written.
const moment = "2006-01-02 15:04:05.000"

// doctorText lays a diagnosis out for a person.
func doctorText(r *doctor.Report, files []doctor.File) string {
	var b strings.Builder
	// What is in a record is not obeyed by the terminal.
	say := func(format string, args ...any) { b.WriteString(command.SafeLine(fmt.Sprintf(format, args...)) + "\n") }
	say("%s", doctorSummary(r))
	for _, note := range doctorNotes(r, files) {
		say("%s", note)
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		b.WriteByte('\n')
		say("%s  %s: %s -> %s", m.At.Format(moment), moved(m), holders(m.From), holders(m.To))
		say("  cause    %s (%s)", m.Cause.Text, m.Cause.Sure)
		if text := unheld(m); text != "" {
			say("  clients  %s", text)
		}
		head := "because"
		for _, e := range m.Evidence {
			say("  %-8s %s %s: %s", head, e.At.Format("15:04:05.000"), e.Node, e.Text)
			head = ""
		}
		if m.Cause.Next != "" {
			say("  next     %s", m.Cause.Next)
		}
	}
	return b.String()
}

func doctorSummary(r *doctor.Report) string {
	return fmt.Sprintf("%s, %s to %s UTC: %s", plural(len(r.Nodes), "node"), r.From.UTC().Format(moment), r.To.UTC().Format(moment), times(len(r.Moves), "move"))
}

// doctorNotes say how far a diagnosis can be trusted.
func doctorNotes(r *doctor.Report, files []doctor.File) (out []string) {
	for _, c := range r.Clocks {
		by, what := c.Ahead.Duration(), "ahead of"
		if by < 0 {
			by, what = -by, "behind"
		}
		out = append(out, fmt.Sprintf("the clock of %s was %s %s the others (to %s, by %s that both sides saw): its times are corrected here",
			c.Node, command.Duration(by), what, command.Duration(c.Precision.Duration()), plural(c.Seen, "advertisement")))
	}
	for _, m := range r.Missing {
		out = append(out, "no record of peer "+strings.TrimSpace(m.Name+" "+m.Address.String()))
	}
	for _, n := range r.Nodes {
		if n.LeftOut > 0 {
			out = append(out, fmt.Sprintf("%s left out %s, as there were too many of a kind", n.Name, plural(int(min(n.LeftOut, 1<<30)), "event")))
		}
	}
	for _, f := range files {
		switch {
		case f.Beyond:
			out = append(out, f.Name+": there is more than is read")
		case f.Torn > 0 || f.Unknown > 0:
			out = append(out, fmt.Sprintf("%s: %s left out that are no event, %d of a kind that this version does not know", f.Name, times(f.Torn, "line"), f.Unknown))
		}
	}
	return out
}

// moved names the VIPs of a move.
func moved(m *doctor.Move) string {
	if len(m.VIPs) == 0 {
		return strings.Join(m.Instances, ", ")
	}
	return joined(m.VIPs)
}

func joined(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

func holders(names []string) string {
	if len(names) == 0 {
		return "no node"
	}
	return strings.Join(names, " and ")
}

// longHandOver is for how long two nodes hold a VIP, at most, when one takes it from the
// other: until that one has heard an advertisement.
const longHandOver = 100 * time.Millisecond

// unheld says what clients may have noticed.
func unheld(m *doctor.Move) string {
	var out []string
	if m.Unheld > 0 {
		out = append(out, "no node held the VIP for "+command.Duration(m.Unheld.Duration()))
	}
	switch both := m.SplitBrain.Duration(); {
	case both >= longHandOver:
		out = append(out, "split brain: two nodes held it for "+command.Duration(both))
	case both > 0:
		out = append(out, "two nodes held it for "+command.Duration(both)+", as in a hand-over")
	}
	return strings.Join(out, "; ")
}

// doctorPage lays a diagnosis out as a page, with timelines.
func doctorPage(r *doctor.Report, files []doctor.File) *report.MovesPage {
	p := &report.MovesPage{Notes: append([]string{doctorSummary(r)}, doctorNotes(r, files)...)}
	for _, n := range r.Nodes {
		p.Facts = append(p.Facts, report.Fact{Name: n.Name, Value: plural(n.Events, "event")})
	}
	for i := range r.Moves {
		p.Moves = append(p.Moves, pageMove(&r.Moves[i]))
	}
	return p
}

// aroundMove is how much of what was before and after a move is drawn.
const aroundMove = 2 * time.Second

func pageMove(m *doctor.Move) report.Move {
	out := report.Move{
		Time: m.At.Format(moment), VIPs: moved(m), From: holders(m.From), To: holders(m.To),
		Cause: m.Cause.Text, Sure: string(m.Cause.Sure), Next: m.Cause.Next, Unheld: m.Unheld.Duration(), Timelines: m.Instances,
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
