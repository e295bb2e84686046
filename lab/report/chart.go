package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// sizes are those of a timeline, in units of its drawing.
type sizes struct {
	width        float64
	lane, bar    float64 // how high
	name, above  float64 // from the top of a lane: the middle or base line of its name, and its bar
	label, right float64 // left and right of what is drawn
	top, axis    float64 // above the lanes and below them
	ticks        int     // at most
	thinnest     float64 // how wide a bar is at least, so that it can be seen
	apart        float64 // how far the numbers of events are from each other, so that they can be read
}

// pageSizes are those of the HTML report, which has a lane's name above its bar: widths are
// in per cent of the page's, from a phone's to a desk's, heights in pixels. At the top are
// the word at the fault and the numbers of events.
var pageSizes = sizes{width: 100, lane: 36, bar: 14, name: 13, above: 19, top: 32, axis: 38, ticks: 6, thinnest: 0.3, apart: 5}

// window is what part of a run a timeline shows, from the fault on.
type window struct{ from, to time.Duration }

// chart is a timeline, ready to be drawn.
type chart struct {
	ID            string // of this chart alone
	Width, Height float64
	PlotX, PlotW  float64
	Bottom        float64 // where the axis is
	FaultX        float64
	Lanes         []lane
	Overlaps      []bar // where two lanes hold a VIP at once
	Ticks         []tick
	Marks         []tick // events, by their number
	Zero          string // what was at 0
	Alt           string // what is to be seen
	sizes
}

type lane struct {
	Name   string
	TextY  float64
	Client bool
	Bars   []bar
}

type bar struct {
	X, Y, W, H float64
	Lost       bool
	Title      string
}

type tick struct {
	X     float64
	Label string
}

// windowOf returns a window that shows what matters of the runs: from a bit before
// the fault to a bit after the last change.
func windowOf(vip string, runs []Run) window {
	end := 200 * time.Millisecond
	begin := time.Duration(0)
	see := func(run Run, at time.Duration) {
		end = max(end, at-run.Fault)
		begin = min(begin, at-run.Fault)
	}
	for _, run := range runs {
		for _, a := range run.Answers {
			if !a.OK {
				see(run, a.From)
				see(run, a.To)
			}
		}
		for _, s := range run.Spans {
			if s.VIP == vip && s.From > run.Fault {
				see(run, s.From)
			}
		}
		for _, e := range run.Events {
			see(run, e.At)
		}
	}
	margin := (end - begin) / 8
	return window{begin - margin, end + margin}
}

// newChart draws a run: a lane for each node that held the VIP, and one for the
// client.
func newChart(id, vip string, run Run, w window, size sizes) chart {
	c := chart{ID: id, Zero: "fault", sizes: size, Width: size.width, PlotX: size.label, PlotW: size.width - size.label - size.right}
	y := size.top
	add := func(l lane) {
		l.TextY = y + size.name
		for i := range l.Bars {
			l.Bars[i].Y, l.Bars[i].H = y+size.above, size.bar
		}
		c.Lanes = append(c.Lanes, l)
		y += size.lane
	}
	for _, node := range holders(vip, run) {
		add(lane{Name: node, Bars: c.holdings(vip, node, run, w)})
	}
	nodes := y
	if !run.NoClient {
		add(lane{Name: "client", Client: true, Bars: c.answers(run, w)})
	}
	c.Overlaps = c.splitBrain(vip, run, w, size.top, nodes)
	c.Bottom = y + 2
	c.Height = c.Bottom + size.axis
	c.FaultX = c.x(0, w)
	c.Ticks = c.ticks(w, size.ticks)
	c.Marks = c.marks(run, w)
	c.Alt = fmt.Sprintf("Timeline: %s without an answer, %d of %d requests lost, VIP held by %d nodes",
		milliseconds(run.Outage), run.Lost, run.Asked, len(holders(vip, run)))
	return c
}

// holders returns the nodes that held a VIP, the first one first.
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

// x returns where a time since the fault is.
func (c *chart) x(at time.Duration, w window) float64 {
	at = max(w.from, min(w.to, at))
	return round(c.PlotX + c.PlotW*float64(at-w.from)/float64(w.to-w.from))
}

// bar returns one for a time of the run, if any of it is within the window.
func (c *chart) bar(from, to time.Duration, run Run, w window) (bar, bool) {
	from, to = from-run.Fault, to-run.Fault
	if to < w.from || from > w.to {
		return bar{}, false
	}
	b := bar{X: c.x(from, w)}
	b.W = round(max(c.x(to, w)-b.X, c.thinnest))
	b.Title = fmt.Sprintf("%s to %s (%s)", offset(from), offset(to), milliseconds(to-from))
	return b, true
}

func (c *chart) holdings(vip, node string, run Run, w window) (bars []bar) {
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

func (c *chart) answers(run Run, w window) (bars []bar) {
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

// splitBrain marks the times for which two nodes held the VIP, across the lanes of
// the nodes.
func (c *chart) splitBrain(vip string, run Run, w window, top, bottom float64) (bars []bar) {
	if run.SplitBrain == 0 {
		return nil // a VIP goes from one node to the other
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

// ticks are at round times from the fault on.
func (c *chart) ticks(w window, most int) (ticks []tick) {
	step := tickStep(w.to-w.from, most)
	for at := (w.from / step) * step; at <= w.to; at += step {
		if at >= w.from {
			ticks = append(ticks, tick{X: c.x(at, w), Label: strconv.FormatInt(at.Milliseconds(), 10)})
		}
	}
	return ticks
}

// marks are at the events. Those too close to be told apart share a label, such as "2-4".
func (c *chart) marks(run Run, w window) (marks []tick) {
	first := -1 // of those that share a label
	for i, e := range run.Events {
		m := tick{X: c.x(e.At-run.Fault, w)}
		if first >= 0 && math.Abs(m.X-marks[first].X) < c.apart {
			marks[first].Label = fmt.Sprintf("%d-%d", first+1, i+1)
		} else {
			m.Label, first = strconv.Itoa(i+1), i
		}
		marks = append(marks, m)
	}
	return marks
}

// tickStep returns 1, 2 or 5 times a power of ten that makes that many at most.
func tickStep(length time.Duration, most int) time.Duration {
	for power := time.Millisecond; ; power *= 10 {
		for _, step := range []time.Duration{power, 2 * power, 5 * power} {
			if int(length/step) < most {
				return step
			}
		}
	}
}

// offset says when something was, from the fault on.
func offset(d time.Duration) string {
	return fmt.Sprintf("%+d ms", d.Round(time.Millisecond).Milliseconds())
}

// round keeps drawings short.
func round(f float64) float64 { return math.Round(f*100) / 100 }
