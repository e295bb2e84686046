package command

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		40 * time.Millisecond:                 "40ms",
		1499 * time.Microsecond:               "1ms",
		time.Second:                           "1s",
		3330 * time.Millisecond:               "3.33s",
		3334 * time.Millisecond:               "3.33s",
		90 * time.Second:                      "1m30s",
		5 * time.Minute:                       "5m",
		2 * time.Hour:                         "2h",
		62 * time.Minute:                      "1h2m",
		10*time.Minute + 400*time.Millisecond: "10m",
	} {
		testkit.Equal(testkit.In(t, d), want, Duration(d))
	}
}

// Colours are for terminals that support them, unless the user disables them.
func TestColours(t *testing.T) {
	if Colours(&bytes.Buffer{}) {
		t.Error("colours in a buffer")
	}
	file, err := os.Create(t.TempDir() + "/out")
	testkit.Must(t, err)
	defer file.Close()
	if Colours(file) {
		t.Error("colours in a file")
	}
	testkit.Equal(t, "x+x", Palette(false).Paint(Red, "x")+Palette(false).Diff("+x"))
	testkit.Equal(t, "\x1b[31mx\x1b[0m\x1b[31m    -y\x1b[0mz", Palette(true).Paint(Red, "x")+Palette(true).Diff("    -y")+Palette(true).Diff("z"))
}

// program is a small one with a group, a command with arguments and formats.
func program(ran *[]string) *cobra.Command {
	root := &cobra.Command{Use: "program"}
	Setup(root)
	var o Format
	var dir string
	leaf := &cobra.Command{Use: "leaf A [B]", Short: "Do it", Example: "  # comment\n  program group leaf x", Args: Args(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { *ran = append(args, string(o), dir); return nil }}
	o.Add(leaf, "text", "json")
	Dir(leaf, &dir, "`directory` to write to")
	leaf.Flags().Duration("timeout", time.Minute, "`duration` of the wait")
	GroupFlags(leaf.Flags(), "Input flags", "timeout")
	Group(root, Group(&cobra.Command{Use: "group", Short: "More"}, leaf))
	AddVersion(root)
	AddHelp(root)
	AddCompletion(root)
	return root
}

func TestExecute(t *testing.T) {
	for line, want := range map[string]string{
		"group leaf":                       "missing: A [B]\nFor example: program group leaf x\nSee 'program group leaf --help'.",
		"group leaf 1 2 3":                 `unexpected argument "3"`,
		"group laef":                       `unknown command "laef" for "program group"; did you mean leaf?`,
		"group laef --dir x":               `unknown command "laef" for "program group"; did you mean leaf?`,
		"gruop leaf":                       `unknown command "gruop" for "program"; did you mean group?`,
		"group":                            "missing: one of the commands leaf",
		"help group laef":                  "did you mean leaf?",
		"completion fisch":                 "did you mean fish",
		"group leaf x -o yaml":             `--output "yaml": expected text or json; files go to --dir DIR`,
		"group leaf x --dir=":              "--dir is empty",
		"group leaf x --timeout soon":      `--timeout "soon": expected a duration`,
		"version --dir x":                  "unknown flag: --dir",
		"help --nonsense":                  "unknown flag: --nonsense",
		"group leaf x -o json -d y z":      "",
		"--version":                        "",
		"version -o json":                  "",
		"help group":                       "",
		"completion zsh --no-descriptions": "",
	} {
		var ran []string
		var out bytes.Buffer
		root := program(&ran)
		root.SetOut(&out)
		err := Execute(t.Context(), root, strings.Fields(line))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", line, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0):
			t.Errorf("%s: %v\n%s", line, err, out.String())
		}
		if strings.HasSuffix(line, "y z") && strings.Join(ran, " ") != "x z json y" {
			t.Errorf("%s ran with %q", line, ran)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	root := program(nil)
	root.SetOut(&out)
	testkit.Must(t, Execute(t.Context(), root, []string{"group", "leaf", "--help"}))
	testkit.Contains(t, out.String(), "Usage:\n  program group leaf A [B] [flags]\n", "\nFlags:\n  -d, --dir directory", "(default text)\n", "\nInput flags:\n      --timeout duration   duration of the wait (default 1m)\n")
}

func TestReadBuild(t *testing.T) {
	defer func(a, b string) { stamped, stampedRevision = a, b }(stamped, stampedRevision)
	for in, want := range map[string]bool{"v1.2.3": true, "": false} {
		stamped, stampedRevision = in, in
		got := readBuild()
		if got.Revision == "" || (got.Revision == in) != want || got.Go != runtime.Version() || (got.Version == "v1.2.3") != want {
			t.Errorf("%q: %+v", in, got)
		}
	}
}
