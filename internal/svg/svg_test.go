package svg

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

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

// TestStyle: nothing is loaded, and each class has a colour in both schemes.
func TestStyle(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark){")
	for _, class := range []string{Good, Bad, Clash, Box, Strong, Faint, "page", "line"} {
		for scheme, text := range map[string]string{"light": light, "dark": dark} {
			testkit.Contains(testkit.In(t, scheme, class), text, "\n."+class+"{")
		}
	}
	testkit.Lacks(t, style, "url(", "@import")
}

func TestFit(t *testing.T) {
	testkit.Equal(t, "master-0", Fit("master-0", Small, 80))
	testkit.Equal(t, "xxxxxxxx…", Fit(strings.Repeat("x", 40), Small, 56))
	testkit.Equal(t, "…", Fit("abc", Small, 0))
}
