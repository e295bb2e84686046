package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
