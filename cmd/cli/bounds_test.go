package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Input that is too large to be parsed into a tree is refused before parsing.
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
		testkit.Must(t, os.WriteFile("large", []byte(text), 0o600))
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
	// Like the bootstrap.ign of an installer, whose contents are long texts.
	text := `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,` + strings.Repeat("YWJj", 2<<20) + `"}}]}}`
	testkit.Must(t, os.WriteFile("large.ign", []byte(text), 0o600))
	exits(t, command.OK, "inspect", "large.ign")
}

// Input just below the bounds costs a bounded amount of memory and time: as much CPU time as
// several readings of the largest file as plain text, on the same machine.
func TestHostileInputIsCheap(t *testing.T) {
	testkit.Measured(t)
	program := testkit.Vipgen(t)
	good(t)
	const most, readings = 300 << 20, 10
	long := readings * plainReading(t)
	files := map[string]string{
		"one file":    ignitionConfig(input.MaxFile-200, 1),
		"many files":  ignitionConfig(1<<20, input.MaxValues/10),
		"merged":      ignitionConfig(input.MaxBase-200, 1),
		"many merged": ignitionConfig(1<<20, input.MaxBaseValues/10),
		"items":       "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n" + strings.Repeat("- {kind: A, metadata: {name: a}}\n", input.MaxValues/10),
	}
	testkit.Must(t, os.Mkdir("folder", 0o700))
	for i := range 2 {
		testkit.Must(t, os.WriteFile(fmt.Sprintf("folder/%d.ign", i), []byte(ignitionConfig(input.MaxSum/2-200, 1)), 0o600))
	}
	files["folder"] = ""
	for name, text := range files {
		file := name
		if text != "" {
			file = strings.ReplaceAll(name, " ", "-") + ".ign"
		}
		for _, words := range [][]string{{"inspect", file}, {"import", file}, {"render", "--role", "master", "--merge", file}, {"fn"}} {
			if text == "" && len(words) != 2 {
				continue
			}
			if text != "" {
				testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
			}
			c := exec.CommandContext(t.Context(), program, words...)
			c.Stdin = strings.NewReader(text)
			testkit.Must(t, c.Start())
			used := peak(t, c)
			spent := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			said := fmt.Sprintf("%s: %v: %d MB, %v of cores, %v", name, words, used>>20, spent, c.ProcessState)
			if code := c.ProcessState.ExitCode(); used > most || spent > long || code < 0 || code > command.Failed {
				t.Error(said)
			} else {
				t.Log(said)
			}
		}
	}
}

// plainReading returns the CPU time of parsing the largest file as one YAML text.
func plainReading(t *testing.T) time.Duration {
	t.Helper()
	text := []byte("a: " + strings.Repeat("x", input.MaxFile-10))
	before := coresOf(t)
	testkit.Must(t, yaml.Unmarshal(text, new(yaml.Node)))
	spent := coresOf(t) - before
	t.Logf("a plain reading: %v of cores", spent)
	return spent
}

// coresOf returns the CPU time of this process.
func coresOf(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	testkit.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peak waits for a program and returns its peak memory. The kernel's figure for an ended
// process includes the test that it was forked from.
func peak(t *testing.T, c *exec.Cmd) (most int64) {
	t.Helper()
	ended := make(chan struct{})
	go func() { c.Wait(); close(ended) }()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-ended:
			return most
		case <-tick.C:
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		for line := range strings.Lines(string(status)) {
			var kB int64
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
				most = max(most, kB<<10)
			}
		}
	}
}

// ignitionConfig returns a config with files of a total size.
func ignitionConfig(size, files int) string {
	var b strings.Builder
	b.WriteString(`{"ignition":{"version":"3.2.0"},"storage":{"files":[`)
	for i := range files {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"path":"/f%d","contents":{"source":"data:,%s"}}`, i, strings.Repeat("%41", size/files/3))
	}
	return b.String() + "]}}"
}

// A function reads files below its working directory, and no others.
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
	testkit.Must(t, err)
	for _, name := range []string{outside, "../" + filepath.Base(filepath.Dir(outside)) + "/secret.yaml", "link.yaml", "fifo.yaml", "/dev/zero", "."} {
		code, out, errOut := run(functionInput(" []", "    installConfigFile: "+name+"\n"), "fn")
		if code != command.Failed || !strings.Contains(errOut, name+": error: found") || strings.Contains(out+errOut, "hidden") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errOut)
		}
	}
}
