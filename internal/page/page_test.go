package page_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/internal/testkit"
)

const evil = "</title></style><script>alert(1)</script> \x1b[2J \u202e & \"quoted\" '"

// No text on a page becomes syntax, and no character of it changes the text's direction.
func TestTextIsNotSyntax(t *testing.T) {
	p := page.Page{Command: evil, Heading: evil, Lead: []string{evil}, Facts: []page.Fact{{Name: evil, Value: evil}, {Name: "left out"}},
		Legend: []page.Key{{Class: evil, Text: evil}}, Body: evil}
	var out bytes.Buffer
	testkit.Must(t, page.New(`<p class="{{.}}">{{.}}</p>{{template "more" .}}`, `{{define "more"}}<b title="{{.}}">{{.}}</b>{{end}}`).Write(&out, p))
	text := testkit.CheckPage(t, out.Bytes())
	if got := strings.Count(text, "\"quoted\""); got != 9 || strings.Contains(text, "left out") || strings.Contains(out.String(), "\u202e") {
		t.Errorf("the text is there %d times, want 9:\n%s", got, text)
	}
}

// A page that cannot be rendered is not written in part.
func TestWholeOrNothing(t *testing.T) {
	var out bytes.Buffer
	body := map[string]any{"fails": func() (string, error) { return "", errors.New("no") }}
	if err := page.New(`begins {{call .fails}}`).Write(&out, page.Page{Body: body}); err == nil || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

// TestColours: each colour that the style uses has a value in both schemes, and each class
// of a legend has a colour.
func TestColours(t *testing.T) {
	var out bytes.Buffer
	testkit.Must(t, page.New("").Write(&out, page.Page{}))
	style := out.String()
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	dark, _, _ = strings.Cut(dark, "\n}\n")
	used := regexp.MustCompile(`var\((--[a-z]+)\)`).FindAllStringSubmatch(style, -1)
	for _, m := range used {
		for scheme, text := range map[string]string{"light": light, "dark": dark} {
			if !strings.Contains(text, m[1]+": #") {
				t.Errorf("%s: no %s", scheme, m[1])
			}
		}
	}
	for _, class := range []string{"held", "ok", "lost", "two", "good", "warn", "bad"} {
		testkit.Contains(testkit.In(t, class), style, ".legend ."+class+" {")
	}
	if len(used) < 20 {
		t.Errorf("%d uses of colours", len(used))
	}
}
