package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Ignition runs the real Ignition engine with a config, as on a node's first boot,
// and returns the directory that it wrote to in place of the node's root.
//
// The engine's "fetch" stage parses and validates the config, its "files" stage
// writes it. They run with
//
//	-platform file            take the config from $IGNITION_CONFIG_FILE
//	-root DIR                 write below DIR
//	-config-cache, -state-file  pass the first stage's result to the second
//	-log-to-stdout            for the test's own log
//
// and, in the environment, IGNITION_SYSTEM_CONFIG_DIR naming an empty directory
// in place of the host's base configs. There is no network: a config that
// refers to a remote resource fails.
//
// Units are written to DIR/etc/systemd/system, masked ones as links to /dev/null,
// and enablement to DIR/etc/systemd/system-preset/20-ignition.preset. The engine's
// own report, which contains the time, is removed.
func Ignition(t testing.TB, config []byte) (root string) {
	t.Helper()
	root, complaint := runIgnition(t, config)
	if complaint != "" {
		t.Fatalf("Ignition refuses the config:\n%s\n%s", complaint, config)
	}
	return root
}

// runIgnition returns the written root, or Ignition's messages about the config.
func runIgnition(t testing.TB, config []byte) (root, refusal string) {
	t.Helper()
	ignition := testkit.Tool(t, "ignition") // it sets owners of files, which needs root
	dir := t.TempDir()
	root = filepath.Join(dir, "root")
	base := filepath.Join(dir, "base")
	for _, d := range []string{root, base} {
		testkit.Must(t, os.Mkdir(d, 0o755))
	}
	file := filepath.Join(dir, "config.ign")
	testkit.Must(t, os.WriteFile(file, config, 0o600))
	for _, stage := range []string{"fetch", "files"} {
		cmd := exec.Command("unshare", "--net", "--", ignition, "-platform", "file", "-stage", stage, "-root", root,
			"-config-cache", filepath.Join(dir, "cache"), "-state-file", filepath.Join(dir, "state"), "-log-to-stdout")
		cmd.Env = []string{"PATH=" + testkit.SearchPath, "IGNITION_CONFIG_FILE=" + file, "IGNITION_SYSTEM_CONFIG_DIR=" + base}
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", stage + ": " + complaint(output, err)
		}
	}
	testkit.Must(t, os.Remove(filepath.Join(root, "etc", ".ignition-result.json")))
	return root, ""
}
