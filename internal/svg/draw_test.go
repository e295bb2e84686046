package svg

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Measures of a terminal, in units.
const (
	cell     = 8.5          // size of its letters
	cellWide = cell * 0.602 // width of each, in the fonts of the style
	cellTall = 12.0         // from line to line
	edge     = 8.0          // around its text
)

// columns is the number of letters on a line of a terminal; longer lines are cut.
const columns = 75

// terminal draws the input and output of a terminal: lines that begin with "$ " are commands.
// Trailing empty lines are dropped.
func terminal(w io.Writer, title, text string) error {
	d := &Drawing{Title: title}
	y := edge
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.TrimRight(line, "\n")
		y += cellTall
		if n := utf8.RuneCountInString(line); n > columns {
			line = string([]rune(line)[:columns-1]) + "…"
		}
		class := mono
		if strings.HasPrefix(line, "$ ") {
			class = mono + " " + Head
			d.About += line[2:] + ". "
		}
		if line != "" {
			d.Text(edge, y, cell, class, line)
		}
	}
	return d.Write(w, y+edge)
}
