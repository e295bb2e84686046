package report

import (
	_ "embed"
	"fmt"
	"io"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/internal/vrrp"
)

//go:embed body.html.tmpl
var body string

var pageTemplate = page.New(body, timeline.Template)

// WriteHTML writes a self-contained page: the table, and for each scenario and profile a timeline
// of the median run and of the worst. All timelines of a scenario have the same scale.
func (r *Report) WriteHTML(w io.Writer) error {
	doc := htmlPage{Report: r}
	for i, s := range r.Scenarios {
		doc.Scenarios = append(doc.Scenarios, r.scenarioHTML(i, s))
	}
	return pageTemplate.Write(w, page.Page{
		Command: "vipgen lab bench",
		Heading: "How long clients are without their VIP",
		Lead: []string{"A client requests a VIP every 10 ms, each time over a new connection, while one thing after the other fails in a cluster of network namespaces. " +
			"What counts is how long it gets no answer."},
		Facts:  append(r.Origin.facts(), r.Machine...),
		Legend: []page.Key{timeline.Held, timeline.Answered, timeline.Lost, timeline.Split},
		Body:   doc,
	})
}

// facts returns the facts for the head of the page.
func (o Origin) facts() []Fact {
	date := ""
	if !o.Date.IsZero() {
		date = o.Date.UTC().Format("2006-01-02 15:04 MST")
	}
	return []Fact{{Name: "date", Value: date}, {Name: "vipgen", Value: o.Version}, {Name: "cluster", Value: o.Cluster}, {Name: "command", Value: o.Command}}
}

type (
	htmlPage struct {
		*Report
		Scenarios []htmlScenario
	}
	htmlScenario struct {
		Scenario
		Number  int
		AimText string
		Rows    []htmlRow
		Clients *clientTable // nil if there were none
	}
	// htmlRow is the row of a result.
	htmlRow struct {
		Result
		Ran                        int
		MedianText, WorstText, Two string
		SlowestText                string
		Against, Verdict           string
		Remarks                    []string
		Missed, Held               bool // the aim; held by two nodes
		Spread                     spread
		Timelines                  []htmlTimeline
	}
	htmlTimeline struct {
		Title string
		Run   Run
		Two   bool // held by two nodes
		Chart timeline.Chart
	}
	// spread draws the outage of each run on a line.
	spread struct {
		Width, Height, Middle float64
		Dots                  []float64
		MedianX               float64
	}
)

func (r *Report) scenarioHTML(number int, s Scenario) htmlScenario {
	s.Title = capital(s.Title)
	doc := htmlScenario{Scenario: s, Number: number + 1, Clients: s.clients()}
	if s.Aim != nil {
		doc.AimText = s.Aim.words()
	}
	var shown []Run
	longest := time.Millisecond
	for _, one := range s.Results {
		if median, ok := one.median(); ok {
			worst, _ := one.worst()
			shown = append(shown, median, worst)
			longest = max(longest, worst.Outage)
		}
	}
	w := windowOf(s.VIP, lists.Map(shown, drawn))
	for i, one := range s.Results {
		doc.Rows = append(doc.Rows, r.rowHTML(fmt.Sprintf("s%d-%d", number+1, i+1), s, one, w, longest))
	}
	return doc
}

func (r *Report) rowHTML(id string, s Scenario, one Result, w timeline.Window, longest time.Duration) htmlRow {
	row := htmlRow{Result: one, Ran: len(one.good()), Remarks: one.remarks()}
	median, ok := one.median()
	if !ok {
		return row
	}
	worst, _ := one.worst()
	row.MedianText, row.WorstText = timeline.Milliseconds(median.Outage), timeline.Milliseconds(worst.Outage)
	row.SlowestText = timeline.Milliseconds(one.slowest())
	row.Two, row.Held = timeline.OrDash(one.splitBrain()), one.splitBrain() > 0
	row.Against, row.Verdict = r.against(s, one), s.verdict(one)
	if v, ok := s.Verdict(one); ok {
		row.Missed = !v.met()
	}
	row.Spread = newSpread(one, median, longest)
	median.Events, worst.Events = moments(s.VIP, median), moments(s.VIP, worst)
	row.Timelines = append(row.Timelines, newTimeline(id+"-m", "Median run", s.VIP, median, w))
	if row.Ran > 1 {
		row.Timelines = append(row.Timelines, newTimeline(id+"-w", "Worst run", s.VIP, worst, w))
	}
	return row
}

func newTimeline(id, title, vip string, run Run, w timeline.Window) htmlTimeline {
	t := htmlTimeline{Title: title, Run: run, Two: run.SplitBrain > 0, Chart: timeline.New(id, vip, run.Run, w, timeline.PageSizes)}
	t.Chart.Alt = fmt.Sprintf("Timeline: %s %s, %d of %d requests lost, VIP held by %d nodes",
		timeline.Milliseconds(run.Outage), vrrp.WithoutAnswer, run.Lost, run.Asked, t.Chart.Nodes)
	return t
}

// OutageText is called by the page's template, as SlowestText and TwoText are.
func (t htmlTimeline) OutageText() string  { return timeline.Milliseconds(t.Run.Outage) }
func (t htmlTimeline) SlowestText() string { return timeline.Milliseconds(t.Run.Slowest) }
func (t htmlTimeline) TwoText() string     { return timeline.Milliseconds(t.Run.SplitBrain) }

func newSpread(one Result, median Run, longest time.Duration) spread {
	const width, height, edge = 150.0, 16.0, 4.0
	x := func(d time.Duration) float64 {
		return timeline.Round(edge + (width-2*edge)*float64(d)/float64(longest))
	}
	s := spread{Width: width, Height: height, Middle: height / 2, MedianX: x(median.Outage)}
	for _, run := range one.good() {
		s.Dots = append(s.Dots, x(run.Outage))
	}
	return s
}
