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

// Columns is how many letters fit on a line of a terminal; longer lines are cut.
const Columns = 75

// Terminal draws what was typed and printed at a terminal: lines that begin with "$ " are
// commands. Empty lines at the end are left out.
func Terminal(w io.Writer, title, text string) error {
	d := &Drawing{Title: title}
	y := edge
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.TrimRight(line, "\n")
		y += cellTall
		if n := utf8.RuneCountInString(line); n > Columns {
			line = string([]rune(line)[:Columns-1]) + "…"
		}
		class := Mono
		if strings.HasPrefix(line, "$ ") {
			class = Mono + " " + Head
			d.About += line[2:] + ". "
		}
		if line != "" {
			d.Text(edge, y, cell, class, line)
		}
	}
	return d.Write(w, y+edge)
}
