package cli

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestPages renders each page twice, checks it like every page, and compares it with the one in
// testdata/pages, which has no style.
func TestPages(t *testing.T) {
	kept, err := filepath.Abs("testdata/pages")
	testkit.Must(t, err)
	good(t)
	must(t, "render", "--dir", "a")
	lay(t, map[string]string{"before.yaml": machineConfigs("1"), "after.yaml": machineConfigs("2")})
	for _, tt := range []struct {
		name, args string
		code       int
		wants      []string
	}{
		{"diff", "diff before.yaml after.yaml", command.Finding, []string{"from", "before.yaml", "reboot", "+evil </pre><script>2", "contents: changed (not shown: a secret)", "<script>'\"&"}},
		{"diff-same", "diff a a", command.OK, []string{"No difference.", "no difference"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append(strings.Fields(tt.args), "-o", "html")
			out := exits(t, tt.code, args...).out
			_, again, _ := run("", args...)
			testkit.Equal(testkit.In(t, "made again"), out, again)
			text := testkit.CheckPage(t, []byte(out))
			for _, want := range tt.wants {
				testkit.Contains(t, text, want+"\n")
			}
			testkit.Lacks(t, out, "SECRET")
			// All pages have the same style.
			out = regexp.MustCompile(`(?s)<style>\n:root.*?</style>`).ReplaceAllString(out, "<style></style>")
			testkit.Kept(t, filepath.Join(kept, tt.name+".html"), []byte(out), *update)
		})
	}
}

// TestInspectShowsNoSecrets reads the input of the pages above, and --dir writes all of it.
func TestInspectShowsNoSecrets(t *testing.T) {
	good(t)
	lay(t, map[string]string{"before.yaml": machineConfigs("1")})
	out := must(t, "inspect", "--contents", "before.yaml")
	testkit.Contains(t, out, "(not shown: a secret)")
	testkit.Lacks(t, out, "SECRET")
	must(t, "inspect", "--dir", "files", "before.yaml")
	found := false
	err := filepath.WalkDir("files", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(path)
			found = found || strings.Contains(string(data), "SECRET")
		}
		return err
	})
	if err != nil || !found {
		t.Errorf("--dir does not write files as they are: %v", err)
	}
}

// machineConfigs is an export with secrets, and with names and text that must not become
// syntax.
func machineConfigs(generation string) string {
	url := func(text string) string { return "data:;base64," + base64.StdEncoding.EncodeToString([]byte(text)) }
	return fmt.Sprintf(`{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
 "metadata": {"name": "50-x", "labels": {"machineconfiguration.openshift.io/role": "<script>'\"&"}},
 "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [
  {"path": "/etc/<script>", "contents": {"source": %q}},
  {"path": "/var/lib/kubelet/config.json", "contents": {"source": %q}}]}}}}
`, url("evil </pre><script>"+generation+"\n\x1b[2J"+generation+"\n"), url(`{"auths": {"r": {"auth": "SECRET`+generation+`"}}}`))
}
