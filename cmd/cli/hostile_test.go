package cli

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// allocated is what a function allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Hard case 53: a text of 1 MB that is aliased 1,000 times is refused before any command
// unfolds it.
func TestHardCase53Aliases(t *testing.T) {
	good(t)
	const most = 40 << 20
	file := "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 00-master}\nx: &x " +
		strings.Repeat("y", 1_000_000) + "\nlist:\n" + strings.Repeat("- *x\n", 1000)
	testkit.Must(t, os.Mkdir("folder", 0o700))
	lay(t, map[string]string{"bad.yaml": file, "folder/install-config.yaml": file, "folder/machineconfigs.yaml": file, "function.yaml": strings.Replace(file, "kind: MachineConfig", "kind: ResourceList", 1)})
	for _, words := range []string{
		"validate bad.yaml", "validate folder", "inspect bad.yaml", "inspect folder", "import bad.yaml", "adopt bad.yaml",
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
