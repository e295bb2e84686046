package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/commandtest"
)

// Usage errors are explained, with a remedy; nothing is printed to standard output, and nothing
// is written.
func TestUsage(t *testing.T) {
	tests := []struct {
		args, want string
	}{
		{"rendr", "unknown command \"rendr\" for \"vipgen\"; did you mean render?\nSee 'vipgen --help'.\n"},
		{"template", "did you mean render?"},
		{"migrate", "missing: one of the commands plan, write\nFor example: vipgen migrate plan"},
		{"diff", "missing: A B\nFor example: vipgen diff main:clusters clusters\nSee 'vipgen diff --help'.\n"},
		{"vr-ids", "missing: NAME... | FILE|DIR|PATTERN...\nFor example: vipgen vr-ids vmware"},
		{"migrate write --profile fast", "missing: --dir DIR"},
		{"render -o ''", `--output "": expected yaml or json; files go to --dir DIR`},
		{"render -o json --dir x", "-o is the format of MachineConfigs and manifests that are printed"},
		{"schema -o json", "vipgen schema prints in one format alone"},
		{"metallb --port https", `--port "https": expected a number`},
		{"render --install-dir nowhere", "--install-dir nowhere: no such directory"},
		{"render --install-dir empty", "not an installer's asset directory with manifests: run 'openshift-install create manifests --dir empty'"},
		{"render --dir a --beside b", "--beside and --dir cannot be used together"},
		{"render /", "name the folder that holds the clusters"},
	}
	good(t)
	testkit.Must(t, os.Mkdir("empty", 0o755))
	before := snapshot(t, ".")
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "''", "")
		}
		exits(t, command.Input, args...).reports(tt.want, " --help'.").silently()
	}
	testkit.Equal(t, len(before), len(snapshot(t, ".")))
}

// Errors are coloured at a terminal, unless NO_COLOR is set, and nowhere else.
func TestColoursAtTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for noColour, want := range map[string]string{"": "\x1b[31mvipgen:\x1b[0m unknown command", "1": "vipgen: unknown command"} {
		t.Setenv("NO_COLOR", noColour)
		master, terminal := openTerminal(t)
		testkit.Equal(t, command.Input, Run([]string{"rendr"}, strings.NewReader(""), terminal, terminal))
		shown := make([]byte, 1000)
		n, err := master.Read(shown)
		if err != nil || !strings.HasPrefix(string(shown[:n]), want) {
			t.Errorf("NO_COLOR=%s: %v, %q", noColour, err, shown[:n])
		}
	}
}

// openTerminal returns both ends of a pseudo-terminal, see pts(4). It must not become the
// terminal of a test that leads a session, which SIGHUP would end.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { master.Close() })
	testkit.Must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

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
