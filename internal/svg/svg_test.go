package svg

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestText: a reader of the XML gets the same text, and no syntax.
func TestText(t *testing.T) {
	evil := `</text><script>alert("x")</script> & ' "`
	d := &Drawing{Title: evil, About: evil}
	d.Text(0, 10, Normal, "", evil)
	d.Rect(0, 0, 1, 1, Good, evil)
	d.Middle(0, 10, Normal, Head, "\x1b[2J\x00")
	var out bytes.Buffer
	testkit.Must(t, d.Write(&out, 20))
	seen := 0
	for x := xml.NewDecoder(&out); ; {
		token, err := x.Token()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "script" {
				t.Error("a script")
			}
		case xml.CharData:
			if string(token) == evil {
				seen++
			}
		}
	}
	testkit.Equal(t, 4, seen)
}

func TestFit(t *testing.T) {
	testkit.Equal(t, "master-0", Fit("master-0", Small, 80))
	testkit.Equal(t, "xxxxxxxx…", Fit(strings.Repeat("x", 40), Small, 56))
	testkit.Equal(t, "…", Fit("abc", Small, 0))
}

var update = flag.Bool("update", false, "draw the recordings in docs/pictures anew")

// TestRecordings: the stills of the docs match the recordings. 'make pictures' records, and
// draws them with -update.
func TestRecordings(t *testing.T) {
	recordings, err := filepath.Glob("../../docs/pictures/*.txt")
	testkit.Must(t, err)
	for _, file := range recordings {
		text := testkit.ReadFile(t, file)
		picture := strings.TrimSuffix(file, ".txt") + ".svg"
		var got bytes.Buffer
		testkit.Must(t, terminal(&got, "vipgen "+strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "-", " "), string(text)))
		testkit.Kept(t, picture, got.Bytes(), *update)
	}
}

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
