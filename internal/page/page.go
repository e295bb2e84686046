// Package page writes reports for browsers: one file each without references and scripts, which
// follows the reader's light or dark scheme, and is readable on a phone. A report provides the
// facts at the top of its page, and a template for the rest.
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

// Page is the content of the frame.
type Page struct {
	Command string // for the title, such as "vipgen verify"
	Heading string
	Lead    []string // the subject, a paragraph each
	Facts   []Fact   // subject and origin; those without a value are left out
	Legend  []Key    // meaning of its colours
	Body    any      // data of the template
}

// Fact is a name with a value, such as "cluster", "demo".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Key is the meaning of a colour. Its class is one of the style's: held, ok, lost, two, good,
// warn or bad.
type Key struct{ Class, Text string }

// Template is the body of a page.
type Template struct{ parsed func() *template.Template }

// New returns the template of a body, with others that it uses, which may define templates.
// They are parsed when the first page is written, which panics on an invalid one.
//
// Templates use html/template, so that no value is ever syntax. Tables for phones have class
// "stack", and a data-label with the heading of its column for each cell: each row is a list
// there.
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

// Write writes a whole page or, if its template fails, nothing. Unprintable characters are
// shown as U+FFFD, so that none turns the direction of text or reaches a terminal.
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
