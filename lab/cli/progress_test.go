package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/bench"
)

// TestBenchProgress prints a line for each run, and the scenarios in their own lines, or in one
// that is redrawn below and fits the terminal.
func TestBenchProgress(t *testing.T) {
	show := func(p *benchProgress) string {
		var out bytes.Buffer
		p.out, p.width = &out, func() int { return 48 }
		p.step(bench.Step{Scenario: 1, Scenarios: 2, Name: "power-loss", Run: 1, Runs: 1, Profile: "fast"})
		p.line("power-loss, run 1 of 1, fast: 130ms")
		p.step(bench.Step{Scenario: 2, Scenarios: 2, Name: "link-down", Run: 1, Runs: 2, Profile: "fast", Left: 149 * time.Second})
		p.step(bench.Step{Scenario: 2, Scenarios: 2, Name: "link-down", Run: 2, Runs: 2, Profile: "fast", Left: 38 * time.Second})
		p.line("interrupted")
		p.end()
		return out.String()
	}
	testkit.Equal(t, `scenario 1 of 2: power-loss
power-loss, run 1 of 1, fast: 130ms
scenario 2 of 2: link-down, about 2m left
interrupted
`, show(newBenchProgress(nil)))
	const anew = "\r\x1b[K"
	first, third := "scenario 1 of 2: power-loss, run 1 of 1, fast", "scenario 2 of 2, about 40s left: link-down, run "
	testkit.Equal(t, anew+first+anew+"power-loss, run 1 of 1, fast: 130ms\n"+first+
		anew+"scenario 2 of 2, about 2m left: link-down, run 1"+anew+third+anew+"interrupted\n"+third+anew, show(&benchProgress{redraw: true}))
}
