package timeline

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// run is a run in which master-0 loses the VIP at 1 s and master-1 acquires it after some time.
func run(outage time.Duration) Run {
	gone, back := time.Second, time.Second+outage
	end := back + 3*time.Second
	return Run{
		Fault: gone,
		Spans: []Span{
			{VIP: "192.0.2.5", Node: "master-0", To: gone + ms},
			{VIP: "192.0.2.5", Node: "master-1", From: back - 8*ms, To: end},
			{VIP: "192.0.2.6", Node: "worker-0", To: end},
		},
		Answers: []Answer{{To: gone, OK: true}, {From: gone, To: back}, {From: back, To: end, OK: true}},
		Events:  []Event{{At: gone, Text: "power off"}, {At: back + time.Second, Text: "served"}},
	}
}

func TestChart(t *testing.T) {
	r := run(300 * ms)
	w := Window{-time.Second, 4 * time.Second}
	c := New("id", "192.0.2.5", r, w, PageSizes)
	if len(c.Lanes) != 3 || c.Lanes[0].Name != "master-0" || c.Lanes[1].Name != "master-1" || !c.Lanes[2].Client {
		t.Fatalf("lanes %+v", c.Lanes)
	}
	for _, l := range c.Lanes {
		for _, b := range l.Bars {
			if b.X < c.PlotX || b.X+b.W > c.PlotX+c.PlotW+c.sizes.Thinnest || b.W < c.sizes.Thinnest {
				t.Errorf("%s: %+v is outside", l.Name, b)
			}
		}
	}
	// The client has no answer from the fault on.
	if lost := c.Lanes[2].Bars[1]; !lost.Lost || lost.X != c.FaultX {
		t.Errorf("lost %+v, fault at %v", lost, c.FaultX)
	}
	if len(c.Overlaps) != 0 || len(c.Ticks) < 3 || len(c.Ticks) > PageSizes.Ticks+1 {
		t.Errorf("overlaps %v, ticks %v", c.Overlaps, c.Ticks)
	}
	if empty := New("id", "192.0.2.5", Run{}, Window{0, time.Second}, PageSizes); len(empty.Lanes) != 1 {
		t.Errorf("an empty run: %+v", empty)
	}
}

// TestZoom enlarges a gap of 133 ms although the node returns after 96 s.
func TestZoom(t *testing.T) {
	r := run(133 * ms)
	r.Spans = append(r.Spans, Span{VIP: "192.0.2.5", Node: "master-0", From: 97 * time.Second, To: 99 * time.Second})
	r.Events = append(r.Events, Event{At: 97 * time.Second, Text: "master-0: booted"})
	w := Zoom("192.0.2.5", r, []string{"master-1"})
	c := New("id", "192.0.2.5", r, w, PageSizes)
	if gap := c.x(125*ms, w) - c.FaultX; gap < c.PlotW/4 {
		t.Errorf("the gap takes %.0f of %.0f", gap, c.PlotW)
	}
	if n := len(c.Moments); n != len(r.Events) || len(c.Marks) >= n {
		t.Errorf("%d moments, %d marks of %d events", n, len(c.Marks), len(r.Events))
	}
}
