// Package timeline draws which nodes held a virtual IP, and what a client received, around a
// moment: in pages, and as pictures.
package timeline

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/internal/page"
)

// Template defines the templates "chart", a Chart of PageSizes in a page, and "moments", its
// events.
//
//go:embed timeline.html.tmpl
var Template string

// Meaning of the colours of timelines.
var (
	Held     = page.Key{Class: "held", Text: "the node holds the VIP"}
	Answered = page.Key{Class: "ok", Text: "the client is answered"}
	Lost     = page.Key{Class: "lost", Text: "no answers"}
	Split    = page.Key{Class: "two", Text: "split brain: two nodes hold the VIP"}
)

// Run is a run to draw. Times are since its start.
type Run struct {
	SplitBrain time.Duration // the longest time that two nodes held a VIP at once
	Fault      time.Duration // the moment that times are counted from
	Spans      []Span
	Answers    []Answer
	Events     []Event
	NoClient   bool // without a client, its answers mean nothing
}

// Span is a span in which a node held a VIP.
type Span struct {
	VIP, Node string
	From, To  time.Duration
}

// Answer is a span in which all requests of the client were answered, or none.
type Answer struct {
	From, To time.Duration
	OK       bool
}

// Event is a marked moment.
type Event struct {
	At   time.Duration
	Text string
}

// Sizes are the sizes of a timeline, in units of its drawing.
type Sizes struct {
	Width        float64
	Lane, Bar    float64 // heights
	Name, Above  float64 // from the top of a lane: the middle or base line of its name, and its bar
	Label, Right float64 // left and right edge
	Top, Axis    float64 // above the lanes and below them
	Ticks        int     // at most
	Thinnest     float64 // minimum width of a visible bar
	Apart        float64 // minimum distance of the events' numbers
}

// PageSizes holds the sizes for pages, which have a lane's name above its bar: widths are in per
// cent of the page's, from a phone's to a desk's, heights in pixels. At the top are the fault's
// label and the numbers of events.
var PageSizes = Sizes{Width: 100, Lane: 36, Bar: 14, Name: 13, Above: 19, Top: 32, Axis: 38, Ticks: 6, Thinnest: 0.3, Apart: 5}

// Window is the part of a run that a timeline shows, relative to the fault.
type Window struct{ From, To time.Duration }

// Chart is a timeline, ready for drawing.
type Chart struct {
	ID            string // unique
	Title         string
	Width, Height float64
	PlotX, PlotW  float64
	Bottom        float64 // position of the axis
	FaultX        float64
	Lanes         []Lane
	Overlaps      []Bar // where two lanes hold a VIP at once
	Ticks         []Tick
	Marks         []Tick // events, by their number
	Moments       []Moment
	Nodes         int    // holders of the VIP
	Zero          string // label at 0
	Alt           string // description in words
	sizes         Sizes
}

// Moment is an event in the list below a chart.
type Moment struct{ At, Text string }

// Lane is a row of a chart.
type Lane struct {
	Name   string
	TextY  float64
	Client bool
	Bars   []Bar
}

// Bar is a span in a lane, or across lanes.
type Bar struct {
	X, Y, W, H float64
	Lost       bool
	Title      string
}

// Tick is a moment with a label.
type Tick struct {
	X     float64
	Label string
}

// Zoom returns a window around the time in which a VIP came to its new holders. Events are in it
// unless they would leave less than a quarter to that time.
func Zoom(vip string, run Run, holders []string) Window {
	end := 100 * time.Millisecond
	for _, holder := range holders {
		i := slices.IndexFunc(run.Spans, func(s Span) bool { return s.VIP == vip && s.Node == holder && s.From >= run.Fault })
		if i >= 0 {
			end = max(end, run.Spans[i].From-run.Fault)
		}
	}
	w := Window{To: end}
	for _, e := range run.Events {
		if at := e.At - run.Fault; at > -2*end && at < 3*end {
			w = Window{min(w.From, at), max(w.To, at)}
		}
	}
	margin := (w.To - w.From) / 8
	return Window{w.From - margin, w.To + margin}
}

// New returns the chart of a run: a lane for each node that held the VIP in the window, and one
// for the client.
func New(id, vip string, run Run, w Window, size Sizes) Chart {
	c := Chart{ID: id, Zero: "fault", sizes: size, Width: size.Width, PlotX: size.Label, PlotW: size.Width - size.Label - size.Right}
	y := size.Top
	add := func(l Lane) {
		l.TextY = y + size.Name
		for i := range l.Bars {
			l.Bars[i].Y, l.Bars[i].H = y+size.Above, size.Bar
		}
		c.Lanes = append(c.Lanes, l)
		y += size.Lane
	}
	for _, node := range holders(vip, run) {
		if bars := c.holdings(vip, node, run, w); len(bars) > 0 {
			add(Lane{Name: node, Bars: bars})
		}
	}
	nodes := y
	if !run.NoClient {
		add(Lane{Name: "client", Client: true, Bars: c.answers(run, w)})
	}
	c.Overlaps = c.splitBrain(vip, run, w, size.Top, nodes)
	c.Bottom = y + 2
	c.Height = c.Bottom + size.Axis
	c.FaultX = c.x(0, w)
	c.Ticks = c.ticks(w, size.Ticks)
	c.Marks = c.marks(run, w)
	for _, e := range run.Events {
		c.Moments = append(c.Moments, Moment{offset(e.At - run.Fault), e.Text})
	}
	c.Nodes = len(holders(vip, run))
	return c
}

// holders returns the nodes that held a VIP, sorted by the first time.
func holders(vip string, run Run) []string {
	spans := slices.Clone(run.Spans)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Node, b.Node)) })
	var nodes []string
	for _, s := range spans {
		if s.VIP == vip && !slices.Contains(nodes, s.Node) {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// x returns the position of a time since the fault.
func (c *Chart) x(at time.Duration, w Window) float64 {
	at = max(w.From, min(w.To, at))
	return Round(c.PlotX + c.PlotW*float64(at-w.From)/float64(w.To-w.From))
}

// bar returns the bar of a span of the run, if any of it is within the window.
func (c *Chart) bar(from, to time.Duration, run Run, w Window) (Bar, bool) {
	from, to = from-run.Fault, to-run.Fault
	if to < w.From || from > w.To {
		return Bar{}, false
	}
	b := Bar{X: c.x(from, w)}
	b.W = Round(max(c.x(to, w)-b.X, c.sizes.Thinnest))
	b.Title = fmt.Sprintf("%s to %s (%s)", offset(from), offset(to), Milliseconds(to-from))
	return b, true
}

func (c *Chart) holdings(vip, node string, run Run, w Window) (bars []Bar) {
	for _, s := range run.Spans {
		if s.VIP != vip || s.Node != node {
			continue
		}
		if b, ok := c.bar(s.From, s.To, run, w); ok {
			b.Title = node + " holds the VIP: " + b.Title
			bars = append(bars, b)
		}
	}
	return bars
}

func (c *Chart) answers(run Run, w Window) (bars []Bar) {
	for _, a := range run.Answers {
		b, ok := c.bar(a.From, a.To, run, w)
		if !ok {
			continue
		}
		b.Lost = !a.OK
		b.Title = "answers: " + b.Title
		if b.Lost {
			b.Title = "no " + b.Title
		}
		bars = append(bars, b)
	}
	return bars
}

// splitBrain marks the spans in which two nodes held the VIP, across the lanes of the nodes.
func (c *Chart) splitBrain(vip string, run Run, w Window, top, bottom float64) (bars []Bar) {
	if run.SplitBrain == 0 {
		return nil // the VIP moves from one node to the other
	}
	for i, a := range run.Spans {
		for _, b := range run.Spans[i+1:] {
			from, to := max(a.From, b.From), min(a.To, b.To)
			if a.VIP != vip || b.VIP != vip || a.Node == b.Node || from >= to {
				continue
			}
			if mark, ok := c.bar(from, to, run, w); ok {
				mark.Y, mark.H = top, bottom-top
				mark.Title = a.Node + " and " + b.Node + " both hold the VIP: " + mark.Title
				bars = append(bars, mark)
			}
		}
	}
	return bars
}

// ticks returns ticks at round times from the fault on.
func (c *Chart) ticks(w Window, most int) (ticks []Tick) {
	step := tickStep(w.To-w.From, most)
	for at := (w.From / step) * step; at <= w.To; at += step {
		if at >= w.From {
			ticks = append(ticks, Tick{X: c.x(at, w), Label: strconv.FormatInt(at.Milliseconds(), 10)})
		}
	}
	return ticks
}

// marks returns the marks of events in the window. Those too close together share a label, such
// as "2-4".
func (c *Chart) marks(run Run, w Window) (marks []Tick) {
	shared, first := -1, 0 // the mark with a shared label, and its event
	for i, e := range run.Events {
		at := e.At - run.Fault
		if at < w.From || at > w.To {
			continue
		}
		m := Tick{X: c.x(at, w)}
		if shared >= 0 && math.Abs(m.X-marks[shared].X) < c.sizes.Apart {
			marks[shared].Label = fmt.Sprintf("%d-%d", first+1, i+1)
		} else {
			m.Label, shared, first = strconv.Itoa(i+1), len(marks), i
		}
		marks = append(marks, m)
	}
	return marks
}

// tickStep returns 1, 2 or 5 times a power of ten for at most that many ticks.
func tickStep(length time.Duration, most int) time.Duration {
	for power := time.Millisecond; ; power *= 10 {
		for _, step := range []time.Duration{power, 2 * power, 5 * power} {
			if int(length/step) < most {
				return step
			}
		}
	}
}

// offset formats a time since the fault.
func offset(d time.Duration) string {
	return fmt.Sprintf("%+d ms", d.Round(time.Millisecond).Milliseconds())
}

// Round rounds to two decimals, which keeps drawings short.
func Round(f float64) float64 { return math.Round(f*100) / 100 }

// Milliseconds rounds up, so that no positive time is shown as 0 ms.
func Milliseconds(d time.Duration) string {
	return fmt.Sprintf("%d ms", int64(math.Ceil(float64(d)/float64(time.Millisecond))))
}

// OrDash is Milliseconds, or a dash for none.
func OrDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return Milliseconds(d)
}
