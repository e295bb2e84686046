package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
)

// printer collects the text output of a command, with indentation.
type printer struct {
	bytes.Buffer
	colours command.Palette
	depth   int
}

func (a *app) printer() *printer { return &printer{colours: command.Colours(a.Out)} }

// line adds a line without control characters.
func (p *printer) line(format string, args ...any) {
	p.paint(command.Plain, fmt.Sprintf(format, args...))
}

func (p *printer) paint(c command.Colour, line string) {
	p.WriteString(p.colours.Paint(c, strings.Repeat("  ", p.depth)+command.SafeLine(line)) + "\n")
}

// wrapped adds a text in lines of lineWidth at most, after an indent.
func (p *printer) wrapped(indent, text string) {
	for _, line := range wrap(text, lineWidth) {
		p.WriteString(indent + line + "\n")
	}
}

func (p *printer) in(f func()) {
	p.depth++
	f()
	p.depth--
}

func show[T any](a *app, o command.Format, v T, text func(*printer, T)) error {
	kind, err := kinds.Kind(v)
	if err != nil {
		return err
	}
	return command.Show(a.Out, o, kind, v, func(out io.Writer, v T) {
		p := a.printer()
		text(p, v)
		out.Write(p.Bytes())
	})
}

// reportInterval is the time before and between reports of progress.
const reportInterval = 2 * time.Second

// progress returns a function that reports at a terminal how much of long work is done.
func (a *app) progress() func(what string, done, total int) {
	if !command.Terminal(a.Err) {
		return func(string, int, int) {}
	}
	said := time.Now()
	return func(what string, done, total int) {
		if time.Since(said) >= reportInterval {
			said = time.Now()
			fmt.Fprintf(a.Err, "vipgen: %s: %d%%\n", what, 100*done/total)
		}
	}
}

// found returns the error of a command that has printed its findings.
func found(err error, finding bool) error {
	if err == nil && finding {
		return command.ErrFinding
	}
	return err
}
