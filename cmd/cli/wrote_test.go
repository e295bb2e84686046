package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
)

// Commands that write report it in one line unless -q is given, and so does a check without
// differences.
func TestWrittenFilesAreReported(t *testing.T) {
	good(t)
	for _, step := range []struct{ args, want string }{
		{"render --dir rendered --format machineconfig", "wrote 6 files to rendered (6 changed)\n"},
		{"render --dir rendered --format machineconfig --check", "rendered: all 6 files are as rendered\n"},
		{"render --dir rendered --format machineconfig", "wrote 6 files to rendered (0 changed)\n"},
		{"render --dir rendered --format machineconfig -q", ""},
		{"render --dir rendered --format machineconfig -q --check", ""},
		{"init --openshift-version 4.18", "wrote vipgen.yaml\n"},
		{"render --dir rendered --format machineconfig", "wrote 7 files to rendered (3 changed)\n"},
	} {
		code, out, stderr := run("", strings.Fields(step.args)...)
		if code != command.OK || out != "" || stderr != step.want {
			t.Errorf("%s: exit code %d\n%s%s", step.args, code, out, stderr)
		}
	}
}

// The root of a file system is refused as an output directory, however it is spelled.
func TestRefusesRoots(t *testing.T) {
	good(t)
	for _, dir := range []string{"/", "//", "/.", "/proc/..", strings.Repeat("../", 40), "/proc/self/root"} {
		code, out, stderr := run("", "render", "--dir", dir)
		if code != command.Input || out != "" || !strings.HasPrefix(stderr, dir+": error: found the root of a file system, expected a directory") {
			t.Errorf("%s: exit code %d\n%s%s", dir, code, out, stderr)
		}
	}
}
