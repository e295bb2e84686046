package report

import (
	_ "embed"
	"fmt"
	"io"
	"time"

	"github.com/vipgen/vipgen/internal/page"
)

//go:embed moves.html.tmpl
var movesPage string

var movesTemplate = page.New(movesPage, timeline)

// MovesPage is about VIPs that moved, and why.
type MovesPage struct {
	Notes []string // what to know before
	Facts []Fact
	Moves []Move
}

// Move is one of them. Run has who held the VIPs (Spans), what happened (Events), and when
// it moved (Fault); all as of Run.
type Move struct {
	Time, VIPs, From, To string
	Cause, Sure          string
	// Or is what else could be the cause, Next what to do.
	Or, Next string
	Unheld   time.Duration
	// Timelines are the VIPs to draw, as in Spans.
	Timelines []string
	Run       Run
}

type htmlMove struct {
	Move
	Number int
	Charts []htmlTimeline
}

// UnheldText and SplitText are for the page.
func (m htmlMove) UnheldText() string { return orDash(m.Unheld) }
func (m htmlMove) SplitText() string  { return orDash(m.Run.SplitBrain) }

// WriteHTML writes one file that needs no other: a table, and for each move its timelines
// and what the cause rests on.
func (p *MovesPage) WriteHTML(w io.Writer) error {
	var moves []htmlMove
	for i, m := range p.Moves {
		one := htmlMove{Move: m, Number: i + 1}
		for k, vip := range m.Timelines {
			t := newTimeline(fmt.Sprintf("m%d-%d", i+1, k+1), vip, vip, m.Run, windowOf(vip, []Run{m.Run}))
			t.Chart.Zero = "move"
			t.Chart.Alt = fmt.Sprintf("Timeline: %s held by %d nodes", vip, len(t.Chart.Lanes))
			if k > 0 {
				t.Events = nil // the same as before
			}
			one.Charts = append(one.Charts, t)
		}
		moves = append(moves, one)
	}
	return movesTemplate.Write(w, page.Page{
		Command: "vipgen doctor",
		Heading: "Why VIPs moved",
		Lead:    p.Notes,
		Facts:   p.Facts,
		Legend:  []page.Key{legend[0], legend[3]},
		Body:    struct{ Moves []htmlMove }{moves},
	})
}
