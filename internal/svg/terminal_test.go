package svg

import (
	"bytes"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "draw the recordings in docs/pictures anew")

// A terminal keeps spaces, cuts long lines, and escapes text.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	testkit.Must(t, terminal(&out, "A lab", "$ vipgen <lab>\n\nVIP   HOLDER\n"+strings.Repeat("x", columns)+"\n"+strings.Repeat("y", columns+1)+"\n\n\n"))
	testkit.Contains(t, out.String(),
		`class="mono head" xml:space="preserve">$ vipgen &lt;lab&gt;</text>`, `class="mono" xml:space="preserve">VIP   HOLDER</text>`, ">"+strings.Repeat("x", columns)+"<",
		">"+strings.Repeat("y", columns-1)+"…<", "<desc>vipgen &lt;lab&gt;. </desc>",
	)
	if wide := 2*edge + columns*cellWide; wide > Width {
		t.Errorf("%d letters are %v wide", columns, wide)
	}
}

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
