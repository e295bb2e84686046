package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

func Terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colour is a parameter of ECMA-48's SGR.
type Colour string

const (
	Plain  Colour = ""
	Bold   Colour = "1"
	Dim    Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Palette colours text if it is true.
type Palette bool

// Colours returns the palette of a stream: colours at a terminal that supports them, unless
// NO_COLOR is set (https://no-color.org).
func Colours(stream any) Palette {
	return Palette(Terminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p Palette) Paint(c Colour, text string) string {
	if !p || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Diff colours a line of a diff by its first character.
func (p Palette) Diff(line string) string {
	switch sign := strings.TrimLeft(line, " "); {
	case strings.HasPrefix(sign, "+"):
		return p.Paint(Green, line)
	case strings.HasPrefix(sign, "-"):
		return p.Paint(Red, line)
	}
	return line
}

// Safe returns text without effects on a terminal: control characters, and others that do not
// print, are escaped as in Go strings.
func Safe(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// SafeLine is Safe that also escapes line breaks.
func SafeLine(s string) string { return strings.ReplaceAll(Safe(s), "\n", `\n`) }

// JSON prints a value as indented JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Object prints a struct or map as an indented JSON object of a kind, whose apiVersion and kind
// come first.
func Object(w io.Writer, kind string, v any) error {
	var body, out bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q`, v1alpha1.APIVersion, kind)
	if fields := bytes.TrimPrefix(body.Bytes(), []byte("{")); bytes.HasPrefix(fields, []byte("}")) {
		object += string(fields)
	} else {
		object += "," + string(fields)
	}
	if err := json.Indent(&out, []byte(object), "", "  "); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}

// Table formats rows of cells that end with tabs, in columns two spaces apart.
func Table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Or lists alternatives.
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Duration formats a duration as flags take it: 40ms, 3.33s, 1m30s, 2h. It has milliseconds
// below a second, hundredths of a second below a minute, else seconds.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(10 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	return shortDuration(d.String())
}

// shortDuration removes trailing zero units from Go's format: 1m0s, 2h0m0s.
func shortDuration(s string) string {
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Millis is Duration for a number of milliseconds.
func Millis[N int | int64 | float64](ms N) string {
	return Duration(time.Duration(float64(ms) * float64(time.Millisecond)))
}

// Plural counts things, "" for none.
func Plural(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
