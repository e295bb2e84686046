package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
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

	Holders []string
	Two     time.Duration

	// Of all nodes except the affected one, if any.
	Beat    time.Duration // the longest time between two heartbeats of a kubelet
	Unready []string      // nodes that were not ready
}

// row holds the results of one step.
type row struct {
	Name, What string
	Seen       seen
}

// report collects the results of a run.
type report struct {
	title string
	rows  []row
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
	b.WriteString("| what happened | VIP: longest time without an answer, lost | ingress VIP | no API server at all | who held the API VIP | split brain | heartbeats of other nodes, not ready |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, w := range r.rows {
		s := w.Seen
		two, beat := "-", "-"
		if s.Two > 0 {
			two = short(s.Two)
		}
		if s.Beat > 0 {
			beat = short(s.Beat) + ", " + cmp.Or(strings.Join(s.Unready, " "), "none")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", w.Name, s.API, s.Web, short(s.NoServer), strings.Join(s.Holders, " → "), two, beat)
	}
	return b.String()
}

// String is the whole report.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s", r.title, r.table())
	for _, w := range r.rows {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", w.Name, w.What)
		if losses := slices.Concat(w.Seen.API.Losses, w.Seen.Web.Losses); len(losses) > 0 {
			fmt.Fprintf(&b, "\nLost:\n\n- %s\n", strings.Join(losses[:min(len(losses), 40)], "\n- "))
		}
	}
	return b.String()
}
