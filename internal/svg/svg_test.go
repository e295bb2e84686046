package svg

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestText: text is what a reader of the XML gets, and never syntax.
func TestText(t *testing.T) {
	evil := `</text><script>alert("x")</script> & ' "`
	d := &Drawing{Title: evil, About: evil}
	d.Text(0, 10, Normal, "", evil)
	d.Rect(0, 0, 1, 1, Good, evil)
	d.Middle(0, 10, Normal, Head, "\x1b[2J\x00")
	var out bytes.Buffer
	if err := d.Write(&out, 20); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for x := xml.NewDecoder(&out); ; {
		token, err := x.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
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
	if seen != 4 {
		t.Errorf("the text is there %d times, want 4", seen)
	}
}

// TestStyle: nothing is loaded, and each class has a colour in both schemes.
func TestStyle(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark){")
	for _, class := range []string{Good, Bad, Clash, Box, Strong, Faint, "page", "line"} {
		for scheme, text := range map[string]string{"light": light, "dark": dark} {
			if !strings.Contains(text, "\n."+class+"{") {
				t.Errorf("%s: nothing for %s", scheme, class)
			}
		}
	}
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("loads something")
	}
}

func TestFit(t *testing.T) {
	if got := Fit("master-0", Small, 80); got != "master-0" {
		t.Error(got)
	}
	if got := Fit(strings.Repeat("x", 40), Small, 56); got != "xxxxxxxx…" {
		t.Error(got)
	}
	if got := Fit("abc", Small, 0); got != "…" {
		t.Error(got)
	}
}
