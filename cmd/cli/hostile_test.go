package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Hard case 53: a text of 1 MB with 1,000 aliases is refused before any command expands it.
func TestHardCase53Aliases(t *testing.T) {
	good(t)
	const most = 40 << 20
	file := "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 00-master}\nx: &x " +
		strings.Repeat("y", 1_000_000) + "\nlist:\n" + strings.Repeat("- *x\n", 1000)
	testkit.Must(t, os.Mkdir("folder", 0o700))
	cluster := "apiVersion: v1\n" + file[strings.Index(file, "metadata:"):]
	lay(t, map[string]string{"bad.yaml": file, "cluster.yaml": cluster, "folder/install-config.yaml": cluster, "folder/machineconfigs.yaml": file, "function.yaml": strings.Replace(file, "kind: MachineConfig", "kind: ResourceList", 1)})
	for _, words := range []string{
		"validate cluster.yaml", "validate folder", "inspect bad.yaml", "inspect folder", "import bad.yaml", "adopt bad.yaml",
		"remove bad.yaml", "diff bad.yaml install-config.yaml", "diff bad.yaml folder", "fn",
	} {
		stdin := ""
		if words == "fn" {
			stdin = string(testkit.ReadFile(t, "function.yaml"))
		}
		var code int
		var errOut string
		if used := allocated(func() { code, _, errOut = run(stdin, strings.Fields(words)...) }); used > most {
			t.Errorf("%s: %d MB", words, used>>20)
		}
		if code == command.OK || !strings.Contains(errOut, "aliases that unfold into too much") {
			t.Errorf("%s: exit code %d\n%.500s", words, code, errOut)
		}
	}
}

// A FIFO, or a link to a terminal, in a folder is skipped, and no command waits for it.
func TestFolderHasNoFIFO(t *testing.T) {
	good(t)
	for _, dir := range []string{"clusters", "out"} {
		testkit.Must(t, os.MkdirAll(dir+"/a", 0o700))
	}
	lay(t, map[string]string{"clusters/a/install-config.yaml": goodInstallConfig})
	must(t, "render", "-d", "out")
	testkit.Must(t, errors.Join(
		syscall.Mkfifo("clusters/fifo.yaml", 0o600), os.Symlink("/dev/tty", "clusters/tty.yaml"), os.Symlink("/dev/zero", "clusters/zero.yml"),
		syscall.Mkfifo("clusters/a/events.yaml", 0o600), syscall.Mkfifo("clusters/a/vipgen-events.jsonl", 0o600), os.Mkdir("clusters/b", 0o700),
	))
	for _, words := range []string{"render clusters -d out/all", "validate clusters/a", "vr-ids clusters", "inspect out", "import clusters", "status clusters", "diff clusters out", "doctor clusters/a/vipgen-events.jsonl"} {
		code, _, errOut := run("", strings.Fields(words)...)
		if wanted := slices.Contains([]string{"render", "validate", "vr-ids"}, strings.Fields(words)[0]); wanted && code != command.OK {
			t.Errorf("%s: exit code %d\n%s", words, code, errOut)
		}
	}
	for _, words := range []string{"render clusters -d out/all", "validate clusters/b", "validate clusters/fifo.yaml"} {
		if words != "validate clusters/fifo.yaml" {
			testkit.Must(t, errors.Join(os.RemoveAll("clusters/b"), os.Mkdir("clusters/b", 0o700), syscall.Mkfifo("clusters/b/install-config.yaml", 0o600)))
		}
		exits(t, command.Failed, strings.Fields(words)...).reports("not a regular file")
	}
	record := "out/machineconfigs/99-master-vipgen.yaml"
	testkit.Must(t, errors.Join(os.Remove(record), syscall.Mkfifo(record, 0o600)))
	exits(t, command.Failed, "render", "-d", "out", "--check").reports("not a regular file")
}

// FuzzInspect: any file is refused or listed as printable text, and extracted only into the
// given directory.
func FuzzInspect(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/a","contents":{"source":"data:,a%1b"}}]},"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b.conf","contents":"c"}]}]}}`))
	f.Add([]byte("apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 99-worker-x, labels: {machineconfiguration.openshift.io/role: worker}}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - path: /../../etc/x\n        contents: {source: 'data:;base64,YQ=='}\n"))
	f.Add([]byte(`{"ignition":{"version":"2.2.0"},"storage":{"files":[{"filesystem":"root","path":"/a","contents":{"source":"data:text/plain;charset=utf-8;base64,YQ==","verification":{}}}]}}`))
	for _, text := range hostile {
		f.Add(fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"kernelArguments":{"shouldExist":[%[1]s]},"passwd":{"users":[{"name":%[1]s}]},"storage":{"files":[{"path":%[1]s,"contents":{"source":%[2]s}}]},"systemd":{"units":[{"name":%[3]s,"contents":%[1]s}]}}`,
			yamlText("/etc/"+strings.ReplaceAll(text, "/", "_")), yamlText("data:,%1b%5b2J"+strings.ReplaceAll(text, "%", "%25")), yamlText(text+".service")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, args := range [][]string{{"inspect", "-"}, {"inspect", "--contents", "-"}} {
			code, stdout, stderr := run(string(data), args...)
			if code != command.OK && (code != command.Input || stdout != "" || stderr == "") {
				t.Errorf("exit code %d, output %q, report %q", code, stdout, stderr)
			}
			if unprintable.MatchString(stdout) || unprintable.MatchString(stderr) {
				t.Errorf("does not print: %q %q", stdout, stderr)
			}
		}
		top := t.TempDir()
		code, stdout, stderr := run(string(data), "inspect", "-", "--dir", top+"/out")
		if code == command.Failed && stderr == "" || stdout != "" {
			t.Errorf("exit code %d, output %q", code, stdout)
		}
		entries, err := os.ReadDir(top)
		testkit.Must(t, err)
		for _, e := range entries {
			if e.Name() != "out" || code != command.OK {
				t.Errorf("exit code %d, and %s is there", code, e.Name())
			}
		}
	})
}
