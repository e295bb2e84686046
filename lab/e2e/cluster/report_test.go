package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// probed holds the result of a probe.
type probed struct {
	Outage   time.Duration
	Lost, Of int
	Pause    time.Duration // longest time for which the probe itself did not run
	Losses   []string      // each run of lost requests: number, time, and the first one's error
}

func (p probed) String() string {
	if p.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%s, %d of %d", short(p.Outage), p.Lost, p.Of)
}

// seen holds the result of a load.
type seen struct {
	VIP      netip.Addr
	API, Web probed
	NoServer time.Duration // longest time without an answer of any API server, not through the VIP

	Lists               time.Duration
	Listed, ListsFailed int
	Events              time.Duration
	Lines               time.Duration
	Downloaded, Breaks  int

	Holders  []string
	Two      time.Duration
	NotReady []string

	// Of all nodes except the affected one, if any.
	Beat    time.Duration // the longest time between two heartbeats of a kubelet
	Unready []string      // nodes that were not ready
}

// row holds the results of one step.
type row struct {
	Name, What            string
	Seen                  seen
	Restarts              []string
	Before, During, After string // kubectl get nodes
}

// report collects the results of a run.
type report struct {
	title string
	rows  []row
	extra []string
}

// newReport returns a report that is printed when the test ends, and written on request.
func newReport(t *testing.T, file, title string) *report {
	r := &report{title: title}
	t.Cleanup(func() {
		t.Logf("\n%s", r.table())
		if *reports == "" {
			return
		}
		testkit.Check(t, os.WriteFile(filepath.Join(*reports, file), []byte(r.String()), 0o644))
	})
	return r
}

func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// table returns a Markdown table.
func (r *report) table() string {
	var b strings.Builder
	b.WriteString("| what happened | VIP: longest time without an answer, lost | ingress VIP | no API server at all | nodes listed | watch | log, breaks | who held the API VIP | split brain | heartbeats of other nodes, not ready | containers restarted |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range r.rows {
		s := w.Seen
		two, beat, restarts := "-", "-", "none"
		if s.Two > 0 {
			two = short(s.Two)
		}
		if s.Beat > 0 {
			beat = short(s.Beat) + ", " + cmp.Or(strings.Join(s.Unready, " "), "none")
		}
		if len(w.Restarts) > 0 {
			restarts = strings.Join(w.Restarts, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s, %d of %d lost | %s | %s, %d | %s | %s | %s | %s |\n",
			w.Name, s.API, s.Web, short(s.NoServer), short(s.Lists), s.ListsFailed, s.Listed+s.ListsFailed,
			short(s.Events), short(s.Lines), s.Breaks, strings.Join(s.Holders, " → "), two, beat, restarts)
	}
	return b.String()
}

// bullets writes a list below a heading, of the first of many lines.
func bullets(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", heading)
	const most = 40
	for _, line := range lines[:min(len(lines), most)] {
		fmt.Fprintf(b, "- %s\n", line)
	}
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(b, "- and %d more\n", more)
	}
}

// String is the whole report.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s", r.title, r.table())
	for _, w := range r.rows {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", w.Name, w.What)
		bullets(&b, "Lost at the API VIP", w.Seen.API.Losses)
		bullets(&b, "Lost at the ingress VIP", w.Seen.Web.Losses)
		bullets(&b, "Not ready, as kubelet said", w.Seen.NotReady)
		for _, t := range []struct{ when, nodes string }{{"Before", w.Before}, {"During", w.During}, {"After", w.After}} {
			if t.nodes != "" {
				fmt.Fprintf(&b, "\n%s:\n\n```\n%s```\n", t.when, t.nodes)
			}
		}
	}
	for _, e := range r.extra {
		b.WriteString("\n" + e)
	}
	return b.String()
}
