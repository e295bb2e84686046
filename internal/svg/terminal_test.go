package svg

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the recordings in docs/pictures anew")

// A terminal keeps spaces, cuts what does not fit, and has text that is no syntax.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	if err := terminal(&out, "A lab", "$ vipgen <lab>\n\nVIP   HOLDER\n"+strings.Repeat("x", columns)+"\n"+strings.Repeat("y", columns+1)+"\n\n\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`class="mono head" xml:space="preserve">$ vipgen &lt;lab&gt;</text>`, `class="mono" xml:space="preserve">VIP   HOLDER</text>`, ">" + strings.Repeat("x", columns) + "<",
		">" + strings.Repeat("y", columns-1) + "…<", "<desc>vipgen &lt;lab&gt;. </desc>",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
	if wide := 2*edge + columns*cellWide; wide > Width {
		t.Errorf("%d letters are %v wide", columns, wide)
	}
}

// TestRecordings: the stills of the docs are drawn from what was recorded. 'make pictures'
// records, and draws them with -update.
func TestRecordings(t *testing.T) {
	recordings, err := filepath.Glob("../../docs/pictures/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range recordings {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		picture := strings.TrimSuffix(file, ".txt") + ".svg"
		var got bytes.Buffer
		if err := terminal(&got, "vipgen "+strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "-", " "), string(text)); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(picture, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(picture); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is not drawn from %s: run 'make pictures', and look at it (%v)", picture, file, err)
		}
	}
}
