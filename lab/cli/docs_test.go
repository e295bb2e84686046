package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
)

// program is the lab, for checks of its commands.
var program = commandtest.Program{Root: Command, Run: Run, Docs: "../../docs"}

func TestHelp(t *testing.T) { program.Check(t) }

// TestDocumented: every command line of the lab on a page has an existing command and existing
// flags; those that need no root print the documented output.
func TestDocumented(t *testing.T) {
	found, ran := 0, 0
	for _, line := range commandtest.Lines(t, "../../README.md", "../../docs/*.md", "../../agent/README.md", "../../agent/*/README.md") {
		if len(line.Words) > 0 && line.Words[0] == "lab" {
			line.Words = line.Words[1:]
			program.Exists(t, line)
			found++
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	testkit.Must(t, err)
	for _, page := range pages {
		for _, block := range commandtest.ShellBlocks(string(testkit.ReadFile(t, page))) {
			for line := range strings.Lines(block) {
				args, ours := strings.CutPrefix(strings.TrimSpace(line), "vipgen lab ")
				if !ours {
					continue
				}
				var out, errOut bytes.Buffer
				if code := Run(strings.Fields(args), strings.NewReader(""), &out, &errOut); code != command.OK || out.Len() == 0 {
					t.Errorf("%s: vipgen lab %s: exit code %d\n%s", page, args, code, &errOut)
				}
				ran++
			}
		}
	}
	if found < 20 || ran == 0 {
		t.Errorf("%d command lines found, %d ran", found, ran)
	}
}
