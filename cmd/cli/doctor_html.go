package cli

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/internal/page/timeline"
)

//go:embed doctor.html.tmpl
var doctorBody string

var doctorTemplate = page.New(doctorBody, timeline.Template)

// htmlMove is a move of a VIP with its timelines and the evidence for its cause.
type htmlMove struct {
	Number               int
	Time, VIPs, From, To string
	Cause                doctor.Cause
	Unheld, SplitBrain   string
	Split                bool
	Charts               []timeline.Chart
}

func doctorPage(to io.Writer, r *doctor.Report, files []doctor.File) error {
	p := page.Page{
		Command: "vipgen doctor",
		Heading: "Why VIPs" + clusterName(r) + " moved",
		Lead:    append([]string{doctorSummary(r)}, doctorNotes(r, files)...),
		Legend:  []page.Key{timeline.Held, timeline.Split},
	}
	for _, n := range r.Nodes {
		p.Facts = append(p.Facts, page.Fact{Name: n.Name, Value: command.Plural(n.Events, "event")})
	}
	var moves []htmlMove
	for i := range r.Moves {
		moves = append(moves, pageMove(i+1, &r.Moves[i]))
	}
	p.Body = moves
	return doctorTemplate.Write(to, p)
}

// clusterName returns the name of the cluster in the names of VRRP instances: demo_API_0.
func clusterName(r *doctor.Report) string {
	cluster := ""
	for _, m := range r.Moves {
		for _, instance := range m.Instances {
			name := instance
			for range 2 {
				name = name[:max(strings.LastIndexByte(name, '_'), 0)]
			}
			if name == "" || cluster != "" && name != cluster {
				return ""
			}
			cluster = name
		}
	}
	if cluster == "" {
		return ""
	}
	return " of " + cluster
}

func pageMove(number int, m *doctor.Move) htmlMove {
	run := moveRun(m)
	out := htmlMove{
		Number: number, Time: m.At.Format(moment), VIPs: movedVIPs(m), From: m.Path()[0], To: strings.Join(m.Path()[1:], " -> "), Cause: m.Cause,
		Unheld: timeline.OrDash(m.Unheld.Duration()), SplitBrain: timeline.OrDash(run.SplitBrain), Split: run.SplitBrain > 0,
	}
	for i, vip := range m.Instances {
		c := timeline.New(fmt.Sprintf("m%d-%d", number, i+1), vip, run, timeline.Zoom(vip, run, m.To), timeline.PageSizes)
		c.Title, c.Zero, c.Alt = vip, "move", fmt.Sprintf("Timeline: %s held by %d nodes", vip, c.Nodes)
		if i > 0 {
			c.Moments = nil // the same as before
		}
		out.Charts = append(out.Charts, c)
	}
	return out
}

// aroundMove is the time before and after a move that is drawn.
const aroundMove = 2 * time.Second

func moveRun(m *doctor.Move) timeline.Run {
	begin := m.At.Add(-aroundMove)
	since := func(t time.Time) time.Duration { return t.Sub(begin) }
	run := timeline.Run{NoClient: true, Fault: aroundMove, SplitBrain: m.SplitBrain.Duration()}
	end := m.At
	for _, e := range m.Evidence {
		run.Events = append(run.Events, timeline.Event{At: since(e.At), Text: e.Node + ": " + e.Text})
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
		run.Spans = append(run.Spans, timeline.Span{VIP: h.Instance, Node: h.Node, From: since(h.From), To: since(to)})
	}
	slices.SortStableFunc(run.Events, func(a, b timeline.Event) int { return int(a.At - b.At) })
	return run
}

func latest(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}
