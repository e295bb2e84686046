package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// script writes a shell script as a program.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	testkit.WriteFile(t, filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"))
	testkit.Must(t, os.Chmod(filepath.Join(dir, name), 0o755))
}

// The names under which a program is searched.
func TestPluginNames(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, name := range []string{"vipgen-one", "vipgen-two-words", "vipgen-2", "vipgen-", "vipgen-Upper", "vipgen-..", "vipgen-a_b", "other"} {
		script(t, dir, name, "")
	}
	testkit.WriteFile(t, filepath.Join(dir, "vipgen-data"), nil)
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "vipgen-folder"), 0o755))
	for _, name := range []string{"2", "one", "two-words"} {
		testkit.Equal(testkit.In(t, name), filepath.Join(dir, "vipgen-"+name), findPlugin(name))
	}
	script(t, filepath.Join(dir, "vipgen-below"), "one", "")
	for _, name := range []string{"", "-", "--help", "Upper", "a_b", "..", "/", "below/one", "../other", dir + "/vipgen-one", "data", "folder", "none", "one\n", "one "} {
		testkit.Equal(testkit.In(t, name), "", findPlugin(name))
	}
	t.Chdir(dir)
	for _, path := range []string{"", ".", ":.", "relative"} {
		t.Setenv("PATH", path)
		testkit.Equal(testkit.In(t, path), "", findPlugin("one"))
	}
}

// The command lines that run a plug-in.
func TestPluginLines(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, name := range []string{"vipgen-lab", "vipgen-other", "vipgen-render", "vipgen-tmpl"} {
		script(t, dir, name, "")
	}
	for line, want := range map[string]string{
		"":                        "",
		"lab":                     "lab",
		"lab up --name x":         "lab up --name x",
		"other --flag":            "other --flag",
		"render x":                "", // vipgen's own
		"help lab up":             "lab help up",
		"help other":              "",
		"__complete lab up --":    "lab __complete up --",
		"__completeNoDesc lab st": "lab __completeNoDesc st",
		"__complete lab":          "lab __complete",
		"__complete other x":      "",
		"none":                    "",
		"-q lab up":               "lab up",
		"-q other":                "",
		"explain lab":             "",
	} {
		program, rest := plugin(Command(), strings.Fields(line))
		got := ""
		if program != "" {
			got = strings.TrimSpace(strings.TrimPrefix(filepath.Base(program), pluginPrefix) + " " + strings.Join(rest, " "))
		}
		testkit.Equal(testkit.In(t, line), want, got)
	}
}

// A program runs plug-ins: with the rest of the line and the streams, next to itself
// before those in PATH, and with their exit codes.
func TestPlugins(t *testing.T) {
	dir, path := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	testkit.Must(t, err)
	testkit.Must(t, process.WriteProgram(filepath.Join(dir, "vipgen"), testkit.ReadFile(t, self)))
	run := func(code int, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "vipgen"), args...)
		cmd.Env = append(os.Environ(), "PATH="+path)
		cmd.Stdin = strings.NewReader(stdin)
		out, _ := cmd.CombinedOutput()
		testkit.Equal(testkit.In(t, args, string(out)), code, cmd.ProcessState.ExitCode())
		return string(out)
	}
	out := run(command.Failed, "", "lab", "up") // without its program
	testkit.Contains(t, out, "run 'make build' in a checkout of vipgen")
	testkit.Equal(testkit.In(t, out), 1, strings.Count(out, "\n"))
	testkit.Contains(t, run(command.OK, "", "lab", "up", "--help"), "vipgen-lab")
	script(t, path, "vipgen-two", `echo "PATH: $*"; read line; echo "$line"; exit 7`)
	testkit.Equal(t, "PATH: a b --dir x\nthrough\n", run(7, "through\n", "two", "a b", "--dir", "x"))
	script(t, dir, "vipgen-two", `echo next to; exit 1`)
	testkit.Equal(t, "next to\n", run(1, "", "two"))
	testkit.Contains(t, run(command.Input, "", "rendr"), "did you mean render?")
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "vipgen-bad"), []byte("no program"), 0o755))
	testkit.Contains(t, run(command.Failed, "", "bad"), "vipgen-bad: exec format error")
}
