package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
)

// Console is the output of vipgen and of commands that it runs, and their exit codes.
type Console struct {
	Out, Err io.Writer
	// Writes is set where the command would have written something.
	Writes bool
}

// Exit prints an error and returns its exit code.
func (c *Console) Exit(err error) int {
	var list problem.List
	var use *UsageError
	var mistake inputError
	var code Code
	switch {
	case err == nil:
		return OK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &list):
		c.Report(list)
		return ExitOf(list)
	case errors.As(err, &use), errors.As(err, &mistake):
		c.Complain(err)
		return Input
	default:
		c.Complain(err)
		return Failed
	}
}

// inputError is an error that the input caused, such as the answer of a process to a request.
type inputError interface {
	error
	Input()
}

// ExitOf returns the exit code of problems: Failed where a file could not be read, as its
// contents may be valid.
func ExitOf(list problem.List) int {
	for _, p := range list.Errors() {
		if p.Code == problem.Unreadable {
			return Failed
		}
	}
	return Input
}

// Complain prints an error that is no list of problems.
func (c *Console) Complain(err error) {
	text := strings.TrimSpace(Safe(err.Error()))
	fmt.Fprintf(c.Err, "%s %s\n", Colours(c.Err).Paint(Red, "vipgen:"), text)
}

// Report prints problems, errors first in the order of the files, and their consequences.
func (c *Console) Report(list problem.List) {
	c.Problems(list)
	if n := len(list.Errors()); n > 0 {
		outcome := ""
		if c.Writes {
			outcome = "; nothing was written"
		}
		c.Complain(errors.New(Plural(n, "problem") + outcome))
	}
}

// Problems prints each problem on a line, and hints of several lines below it.
func (c *Console) Problems(list problem.List) {
	colours := Colours(c.Err)
	for _, p := range list {
		var steps []string
		if strings.Contains(p.Hint, "\n") {
			steps, p.Hint = strings.Split(p.Hint, "\n"), ""
		}
		line, colour := SafeLine(p.String()), Red
		if p.Severity == problem.Warning {
			colour = Yellow
		}
		before, after, _ := strings.Cut(line, string(p.Severity)+": ")
		fmt.Fprintln(c.Err, before+colours.Paint(colour, string(p.Severity)+":")+" "+after)
		for _, s := range steps {
			fmt.Fprintln(c.Err, "  "+SafeLine(s))
		}
	}
}

// Show prints a value as a JSON object of a kind or as text, once the whole text is written.
func Show[T any](out io.Writer, o Format, kind string, v T, text func(io.Writer, T)) error {
	if o == "json" {
		return Object(out, kind, v)
	}
	var b bytes.Buffer
	text(&b, v)
	_, err := out.Write(b.Bytes())
	return err
}
