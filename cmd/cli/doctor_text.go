package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/internal/vrrp"
)

const moment = "2006-01-02 15:04:05.000"

func doctorText(p *printer, d diagnosis) {
	p.line("%s", doctorSummary(d.Report))
	for _, note := range doctorNotes(d.Report, d.Files) {
		p.line("%s", note)
	}
	for i := range d.Moves {
		m := &d.Moves[i]
		p.line("")
		p.line("%s  %s: %s", m.At.Format(moment), movedVIPs(m), strings.Join(m.Path(), " -> "))
		p.line("  cause    %s (%s)", m.Cause.Text, m.Cause.Sure)
		if m.Cause.Or != "" {
			p.line("  or       %s", m.Cause.Or)
		}
		if text := outageText(m); text != "" {
			p.line("  clients  %s", text)
		}
		head := "because"
		for _, e := range m.Evidence {
			p.line("  %-8s %s %s: %s", head, e.At.Format("15:04:05.000"), e.Node, e.Text)
			head = ""
		}
		if m.Cause.Next != "" {
			p.line("  next     %s", m.Cause.Next)
		}
	}
}

func doctorSummary(r *doctor.Report) string {
	return fmt.Sprintf("%s, %s to %s UTC: %s", command.Plural(len(r.Nodes), "node"), r.From.UTC().Format(moment), r.To.UTC().Format(moment), times(len(r.Moves), "move"))
}

// doctorNotes returns the limits of a diagnosis.
func doctorNotes(r *doctor.Report, files []doctor.File) (out []string) {
	for _, c := range r.Clocks {
		by, what := c.Ahead.Duration(), "ahead of"
		if by < 0 {
			by, what = -by, "behind"
		}
		out = append(out, fmt.Sprintf("the clock of %s was %s %s the others (to %s, by %s that both sides saw): its times are corrected here",
			c.Node, command.Duration(by), what, command.Duration(c.Precision.Duration()), command.Plural(c.Seen, "advertisement")))
	}
	for _, m := range r.Missing {
		out = append(out, "no record of peer "+strings.TrimSpace(m.Name+" "+m.Address.String()))
	}
	for _, n := range r.Nodes {
		if n.LeftOut > 0 {
			out = append(out, fmt.Sprintf("%s left out %s, as there were too many of a kind", n.Name, countEvents(n.LeftOut)))
		}
		if n.Missed > 0 {
			out = append(out, fmt.Sprintf("%s could not write %s: causes are not certain there", n.Name, countEvents(n.Missed)))
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

func countEvents(n uint64) string { return command.Plural(int(min(n, 1<<30)), "event") }

func movedVIPs(m *doctor.Move) string {
	if len(m.VIPs) == 0 {
		return strings.Join(m.Instances, ", ")
	}
	return list(m.VIPs)
}

// longHandOver is the longest time that two nodes hold a VIP during a normal takeover: until
// the old holder receives an advertisement.
const longHandOver = 100 * time.Millisecond

func outageText(m *doctor.Move) string {
	var out []string
	if m.Unheld > 0 {
		out = append(out, command.Duration(m.Unheld.Duration())+" "+vrrp.WithoutHolder)
	}
	switch both := m.SplitBrain.Duration(); {
	case both >= longHandOver:
		out = append(out, "split brain: two nodes held it for "+command.Duration(both))
	case both > 0:
		out = append(out, "two nodes held it for "+command.Duration(both)+", as in a hand-over")
	}
	return strings.Join(out, "; ")
}
