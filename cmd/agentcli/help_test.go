package agentcli

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/cmd/command"
)

// privateWords must not occur in help texts: see the same table of vipgen's commands.
var privateWords = regexp.MustCompile(`(?i)\badverts?\b|\bof its own\b|\bin place of\b|\bbeside\b|\btakes back\b|\bgoes on\b|\b(say|says) who\b|\bfor how long\b|\bfor ever\b|\bwhere it is to\b|\bhow long\b`)

func TestHelpIsReadable(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		_, help, _ := run(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > command.HelpWidth {
				t.Errorf("%s --help: too wide: %s", c.CommandPath(), line)
			}
		}
		if old := privateWords.FindString(strings.Join(strings.Fields(help), " ")); old != "" {
			t.Errorf("%s --help: %q", c.CommandPath(), old)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "bool" && !strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s: no name for its value", c.CommandPath(), f.Name)
			}
		})
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk((&app{}).command())
}
