// Package page makes the reports that are read in a browser: one file each that needs no
// other and runs no script, follows the reader's light or dark scheme, and can be read on
// a phone. A report gives what its page says at the top, and a template for the rest.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"unicode"
)

//go:embed page.css
var style string

//go:embed page.html.tmpl
var frame string

// Page is what stands in the frame.
type Page struct {
	Command string // that made it, for the title, such as "vipgen verify"
	Heading string
	Lead    []string // what it is about, a paragraph each
	Facts   []Fact   // of what and by what it was made; those without a value are left out
	Legend  []Key    // what its colours mean
	Body    any      // for the template
}

// Fact is a name with a value, such as "cluster", "demo".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Key says what a colour means. Its class is one of the style's: held, ok, lost, two,
// good, warn or bad.
type Key struct{ Class, Text string }

// Template is the body of a page.
type Template struct{ parsed func() *template.Template }

// New returns a page with the template of a body, and others that it uses, which may define
// templates. They are parsed when the first page is written, which panics if one is wrong.
//
// Templates write values with html/template, so that none is ever syntax. Tables that are
// to be read on a phone have class "stack", and a data-label with the heading of its
// column for each cell: each row is a list there.
func New(body string, others ...string) *Template {
	return &Template{sync.OnceValue(func() *template.Template {
		t := template.Must(template.New("page").Funcs(template.FuncMap{"style": func() template.CSS { return template.CSS(style) }}).Parse(frame))
		template.Must(t.New("body").Parse(body))
		for i, text := range others {
			template.Must(t.New(fmt.Sprint("other", i)).Parse(text))
		}
		return t
	})}
}

// Write writes a page as a whole or, if its template fails, nothing of it. Of text from
// elsewhere, characters that do not print are shown as U+FFFD, so that none turns the
// direction of text or reaches a terminal.
func (t *Template) Write(w io.Writer, p Page) error {
	var b bytes.Buffer
	if err := t.parsed().ExecuteTemplate(&b, "page", p); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.Map(printed, b.String()))
	return err
}

func printed(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}
