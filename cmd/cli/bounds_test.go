package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
)

// What is too large to be worth a tree of it is refused before there is one.
func TestInputIsBounded(t *testing.T) {
	good(t)
	for name, text := range map[string]string{
		"small objects": `{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.Repeat(`{"path":"/a"},`, input.MaxValues/2) + `{}]}}`,
		"lines":         "a:\n" + strings.Repeat("- a: b\n", input.MaxValues/3+1),
		"one line":      "a: [" + strings.Repeat("{},", input.MaxValues/2) + "{}]\n",
		"nesting":       strings.Repeat("- - - - - - - - a\n", input.MaxValues/9+1),
		"documents":     strings.Repeat("---\na: b\n", input.MaxValues/3+1),
		"bytes":         strings.Repeat("x", input.MaxFile+1),
	} {
		if err := os.WriteFile("large", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, words := range [][]string{{"inspect", "large"}, {"import", "large"}, {"render", "--merge", "large", "--role", "master"}, {"fn"}} {
			stdin := ""
			if words[0] == "fn" {
				stdin = text
			}
			code, _, errOut := run(stdin, words...)
			if code != command.Failed || !strings.Contains(errOut, "[unreadable]") || !strings.Contains(errOut, "more than") && !strings.Contains(errOut, "larger than") {
				t.Errorf("%s: %v: exit code %d\n%.300s", name, words, code, errOut)
			}
		}
	}
	// As the bootstrap.ign of an installer, whose contents are long texts.
	text := `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,` + strings.Repeat("YWJj", 2<<20) + `"}}]}}`
	if err := os.WriteFile("large.ign", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run("", "inspect", "large.ign"); code != command.OK {
		t.Errorf("8 MiB of contents: exit code %d\n%.300s", code, errOut)
	}
}

// Nobody waits for a FIFO that nobody writes to.
func TestInputIsNoFIFO(t *testing.T) {
	good(t)
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := run("", "inspect", "fifo")
	if code != command.Failed || !strings.Contains(errOut, "not a regular file") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
}

// A function reads what is below its working directory, and nothing else.
func TestFunctionReadsNothingElse(t *testing.T) {
	good(t)
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	err := os.WriteFile(outside, []byte("password: hidden\n"), 0o600)
	if err == nil {
		err = os.Symlink(outside, "link.yaml")
	}
	if err == nil {
		err = syscall.Mkfifo("fifo.yaml", 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{outside, "../" + filepath.Base(filepath.Dir(outside)) + "/secret.yaml", "link.yaml", "fifo.yaml", "/dev/zero", "."} {
		code, out, errOut := run(functionInput(" []", "    installConfigFile: "+name+"\n"), "fn")
		if code != command.Failed || !strings.Contains(errOut, name+": error: found") || strings.Contains(out+errOut, "hidden") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errOut)
		}
	}
}
