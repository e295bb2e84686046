// Package svg draws vipgen's pictures: one file each without references, which follows the
// reader's light or dark scheme, with text that is readable at 400 pixels.
package svg

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Width is the width of every drawing, in units, which are pixels at 400 pixels.
const Width = 400.0

// Text sizes, in units.
const (
	Small  = 10.0
	Normal = 11.0
	Large  = 14.0
)

// Classes of shapes and text, with a colour in each scheme.
const (
	Good   = "good"   // served, holds a VIP
	Bad    = "bad"    // not served
	Clash  = "clash"  // two nodes hold a VIP
	Box    = "box"    // a part
	Strong = "strong" // an important part
	Faint  = "faint"  // lines and text of less weight
	Head   = "head"   // a heading
	mono   = "mono"   // monospace, with all spaces, as in a terminal
)

// style is light, or dark if the reader prefers that.
const style = `
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;fill:#1f2328}
.page{fill:#fff}
.good{fill:#0969da}
.bad{fill:#cf222e}
.clash{fill:#cf222e;fill-opacity:.25}
.box{fill:#f6f8fa;stroke:#8c959f}
.strong{fill:#ddf4ff;stroke:#0969da}
.line{fill:none;stroke:#57606a}
.faint{fill:none;stroke:#d0d7de}
text.faint{fill:#57606a;stroke:none}
text.head{font-weight:600}
text.bad{fill:#cf222e}
text.mono{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme: dark){
text{fill:#e6edf3}
.page{fill:#0d1117}
.good{fill:#58a6ff}
.bad{fill:#ff7b72}
.clash{fill:#ff7b72}
.box{fill:#161b22;stroke:#6e7681}
.strong{fill:#0c2d6b;stroke:#58a6ff}
.line{stroke:#9198a1}
.faint{stroke:#30363d}
text.faint{fill:#9198a1}
text.bad{fill:#ff7b72}
}
`

// Drawing is a picture with the width Width, as high as its content.
type Drawing struct {
	// Title and About describe the picture.
	Title, About string
	body         bytes.Buffer
}

// Rect draws a rectangle; a title, if not empty, is shown on hovering.
func (d *Drawing) Rect(x, y, w, h float64, class, title string) {
	fmt.Fprintf(&d.body, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"`, num(x), num(y), num(w), num(h), escape(class))
	if class == Box || class == Strong {
		d.body.WriteString(` rx="4"`)
	}
	if title == "" {
		d.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&d.body, "><title>%s</title></rect>\n", escape(title))
}

func (d *Drawing) Dot(x, y, r float64, class string) {
	fmt.Fprintf(&d.body, `<circle cx="%s" cy="%s" r="%s" class="%s"/>`+"\n", num(x), num(y), num(r), escape(class))
}

func (d *Drawing) Line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.body, `<path d="M%s %sL%s %s" class="%s"/>`+"\n", num(x1), num(y1), num(x2), num(y2), escape(class))
}

// Arrow draws a horizontal line with a head at x2.
func (d *Drawing) Arrow(x1, x2, y float64) {
	d.Line(x1, y, x2, y, "line")
	fmt.Fprintf(&d.body, `<path d="M%s %sl-4 -3m4 3l-4 3" class="line"/>`+"\n", num(x2), num(y))
}

// Text writes a line that begins at x. y is its base line.
func (d *Drawing) Text(x, y, size float64, class, text string) { d.text(x, y, size, class, "", text) }

// Middle is Text centred at x.
func (d *Drawing) Middle(x, y, size float64, class, text string) {
	d.text(x, y, size, class, "middle", text)
}

func (d *Drawing) text(x, y, size float64, class, anchor, text string) {
	fmt.Fprintf(&d.body, `<text x="%s" y="%s" font-size="%s"`, num(x), num(y), num(size))
	if class != "" {
		fmt.Fprintf(&d.body, ` class="%s"`, escape(class))
	}
	if anchor != "" {
		fmt.Fprintf(&d.body, ` text-anchor="%s"`, anchor)
	}
	if strings.HasPrefix(class, mono) {
		d.body.WriteString(` xml:space="preserve"`)
	}
	fmt.Fprintf(&d.body, ">%s</text>\n", escape(text))
}

// perLetter is the average width of a letter relative to its size, in the fonts of the style: a
// drawing cannot measure text.
const perLetter = 0.56

// Fit shortens text that is too wide.
func Fit(text string, size, width float64) string {
	letters := []rune(text)
	if float64(len(letters))*size*perLetter <= width {
		return text
	}
	n := max(int(width/(size*perLetter))-1, 0)
	return string(letters[:min(n, len(letters))]) + "…"
}

func (d *Drawing) Write(w io.Writer, height float64) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %[1]s %[2]s" width="%[3]s" height="%[4]s" style="max-width:100%%;height:auto">
<title>%[5]s</title>
<desc>%[6]s</desc>
<style>%[7]s</style>
<rect width="%[1]s" height="%[2]s" class="page"/>
%[8]s</svg>
`, num(Width), num(height), num(2*Width), num(2*height), escape(d.Title), escape(d.About), style, d.body.Bytes())
	return err
}

// escape escapes text for XML, and removes characters that XML does not allow.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

// num formats a coordinate with one decimal.
func num(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}
