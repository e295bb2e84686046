package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"
)

// probed holds the result of a probe.
type probed struct {
	Outage   time.Duration
	Lost, Of int
}

func (p probed) String() string {
	if p.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%s, %d of %d", short(p.Outage), p.Lost, p.Of)
}

// seen holds the result of a load.
type seen struct {
	API, Web probed
	NoServer time.Duration // longest time without an answer of any API server, not through the VIP

	Holders []string
	Two     time.Duration
	Unready []string // nodes that were not ready, except for the affected one
}

// report is a Markdown table of the results of a run, which is printed when the test ends.
type report struct{ strings.Builder }

func newReport(t *testing.T) *report {
	r := &report{}
	r.WriteString("| what happened | VIP: longest time without an answer, lost | ingress VIP | no API server at all | who held the API VIP | split brain | other nodes not ready |\n|---|---|---|---|---|---|---|\n")
	t.Cleanup(func() { t.Logf("\n%s", r) })
	return r
}

// add adds the results of one step.
func (r *report) add(what string, s seen) {
	two := "-"
	if s.Two > 0 {
		two = short(s.Two)
	}
	fmt.Fprintf(r, "| %s | %s | %s | %s | %s | %s | %s |\n", what, s.API, s.Web, short(s.NoServer), strings.Join(s.Holders, " → "), two, cmp.Or(strings.Join(s.Unready, " "), "none"))
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
