package report

import (
	"fmt"
	"io"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/internal/svg"
)

// svgSizes are the sizes of a timeline in a picture.
var svgSizes = timeline.Sizes{Width: svg.Width, Lane: 15, Bar: 9, Name: 7.5, Above: 3, Label: 76, Right: 16, Ticks: 6, Thinnest: 1.5, Apart: 14}

// svgMargin is the margin on the left and on the right.
const svgMargin = 10.0

// WriteSVG writes one picture: for each scenario, the median run of each profile, one below the
// other and at one scale, with the VIP's holders and the client's answers.
func (r *Report) WriteSVG(w io.Writer) error {
	d := &svg.Drawing{Title: "Failures as a client sees them"}
	y := 8.0
	for _, s := range r.Scenarios {
		y = s.draw(d, y)
	}
	return d.Write(w, y)
}

// draw draws a scenario below y and returns the position of its lower edge.
func (s Scenario) draw(d *svg.Drawing, y float64) float64 {
	y += 16
	d.Text(svgMargin, y, svg.Large, svg.Head, svg.Fit(capital(plain(s.Title)), svg.Large, svg.Width-2*svgMargin))
	y = drawLegend(d, y+18) + 3
	var shown []timeline.Run
	for _, one := range s.Results {
		if median, ok := one.median(); ok {
			shown = append(shown, median.Run)
		}
	}
	w := windowOf(s.VIP, shown)
	for _, one := range s.Results {
		name := svg.Fit(plain(one.Profile), svg.Normal, 110)
		y += 17
		median, ok := one.median()
		if !ok {
			d.Text(svgMargin, y, svg.Normal, svg.Head, name+": nothing was measured")
			continue
		}
		outage := "no answer for " + timeline.Milliseconds(median.Outage)
		if median.Outage == 0 {
			outage = "every request answered"
		}
		d.Text(svgMargin, y, svg.Normal, svg.Head, name+": "+outage)
		d.About += fmt.Sprintf("%s, %s: %s; %d of %d requests lost. ", plain(s.Title), plain(one.Profile), outage, median.Lost, median.Asked)
		y = draw(d, timeline.New("", s.VIP, median.Run, w, svgSizes), y+4)
	}
	if len(shown) == 0 {
		return y + 12
	}
	return drawAxis(d, w, y+12)
}

// drawLegend explains the bars and returns the position of its lower edge.
func drawLegend(d *svg.Drawing, y float64) float64 {
	x := svgMargin
	for _, l := range []struct {
		class string
		thin  bool
		text  string
	}{{svg.Good, false, "holds the VIP"}, {svg.Good, true, "client is answered"}, {svg.Bad, false, "no answer"}, {svg.Clash, false, "split brain"}} {
		drawBar(d, timeline.Bar{X: x, Y: y - 8.5, W: 14, H: svgSizes.Bar}, l.class, l.thin)
		d.Text(x+18, y, svg.Small, svg.Faint, l.text)
		x += 18 + float64(len(l.text))*5.1 + 14
	}
	return y
}

// drawBar draws a bar, thin for the regular state.
func drawBar(d *svg.Drawing, b timeline.Bar, class string, thin bool) {
	if thin {
		b.Y, b.H = b.Y+b.H/2-1.5, 3
	}
	d.Rect(b.X, b.Y, b.W, b.H, class, b.Title)
}

// draw draws a timeline below y and returns the position of its lower edge.
func draw(d *svg.Drawing, c timeline.Chart, y float64) float64 {
	for _, t := range c.Ticks {
		d.Line(t.X, y, t.X, y+c.Bottom, svg.Faint)
	}
	for _, l := range c.Lanes {
		d.Text(svgMargin, y+l.TextY+3.5, svg.Small, svg.Faint, svg.Fit(plain(l.Name), svg.Small, svgSizes.Label-svgMargin-4))
		for _, b := range l.Bars {
			b.Y += y
			b.Title = plain(b.Title)
			class := svg.Good
			if b.Lost {
				class = svg.Bad
			}
			drawBar(d, b, class, l.Client && !b.Lost)
		}
	}
	for _, b := range c.Overlaps {
		d.Rect(b.X, y+b.Y, b.W, b.H, svg.Clash, plain(b.Title))
	}
	d.Line(c.FaultX, y-2, c.FaultX, y+c.Bottom, "line")
	return y + c.Bottom
}

// drawAxis labels the times below y and returns the position of its lower edge.
func drawAxis(d *svg.Drawing, w timeline.Window, y float64) float64 {
	for _, t := range timeline.New("", "", timeline.Run{NoClient: true}, w, svgSizes).Ticks {
		d.Middle(t.X, y, svg.Small, svg.Faint, t.Label)
	}
	d.Text(svgMargin, y, svg.Small, svg.Faint, "ms")
	d.Text(svgSizes.Label, y+14, svg.Small, svg.Faint, "time since the failure, in milliseconds")
	return y + 24
}
