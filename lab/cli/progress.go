package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/lab/bench"
)

// benchProgress prints a line for each run of a benchmark and, below them on a terminal, a status
// line with the number of the scenario and the time left. Without a terminal it prints that as a
// line for each scenario.
type benchProgress struct {
	out    io.Writer
	redraw bool
	width  func() int // of the terminal; 0 for any

	mu       sync.Mutex
	status   string
	scenario int
}

func newBenchProgress(out io.Writer) *benchProgress {
	p := &benchProgress{out: out, redraw: redrawn(out)}
	p.width = func() int {
		width, _, _ := term.GetSize(int(out.(*os.File).Fd()))
		return width
	}
	return p
}

// line prints a line above the status.
func (p *benchProgress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redraw {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintf(p.out, "%s\n%s", command.SafeLine(text), p.status)
}

func (p *benchProgress) step(s bench.Step) {
	left := ""
	if s.Left > 0 {
		left = ", about " + command.Duration(max(s.Left.Round(time.Minute), time.Minute)) + " left"
	}
	if s.Left > 0 && s.Left < 2*time.Minute {
		left = ", about " + command.Duration(max(s.Left.Round(10*time.Second), 10*time.Second)) + " left"
	}
	where := fmt.Sprintf("scenario %d of %d", s.Scenario, s.Scenarios)
	if !p.redraw {
		if s.Scenario != p.scenario {
			p.line(where + ": " + s.Name + left)
		}
		p.scenario = s.Scenario
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = labView{width: p.width()}.row(nil, cell{where + left + ": " + s.String(), command.Plain})
	fmt.Fprintf(p.out, "\r\x1b[K%s", p.status)
}

// end clears the status line.
func (p *benchProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redraw {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.status = ""
}
