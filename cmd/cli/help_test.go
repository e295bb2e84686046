package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command/commandtest"
	"github.com/vipgen/vipgen/cmd/inputflags"
)

// program is vipgen, for checks of its commands.
var program = commandtest.Program{Root: Command, Run: Run, Docs: "../../docs"}

func TestHelp(t *testing.T) { program.Check(t) }

func TestInputFlagsHaveAGroup(t *testing.T) {
	help := must(t, "render", "--help")
	_, input, found := strings.Cut(help, "\n"+inputflags.Title+":\n")
	if !found || !strings.Contains(input, "--agent-config file") || strings.Contains(input, "--install-dir") {
		t.Errorf("render --help:\n%s", help)
	}
}
