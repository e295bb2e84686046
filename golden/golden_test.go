package golden

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

var (
	update = flag.Bool("update", false, "write what comes out to cases/*/expected")
	trees  = flag.String("trees", "", "write all files of every case into this directory, for tests of other modules")
)

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as cmd/vipgen does
	}
	testkit.InMemory()
	os.Exit(m.Run())
}

// TestCases renders all outputs of every case, compares them with the expected ones, and has
// the real programs and types parse them.
func TestCases(t *testing.T) {
	testkit.Deterministic(t)
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.result(t)
			t.Run("expected", func(t *testing.T) { checkExpected(t, c, r) })
			if slices.Contains(whole, c.name) {
				t.Run("again", func(t *testing.T) { checkAgain(t, c, r) })
			}
			t.Run("verbatim", func(t *testing.T) { checkVerbatim(t, r) })
			t.Run("secrets", func(t *testing.T) { checkSecrets(t, c, r) })
			t.Run("VIPs", func(t *testing.T) { checkVIPs(t, r) })
			t.Run("delimiters", func(t *testing.T) { checkDelimiters(t, r) })
			t.Run("machineconfigs", func(t *testing.T) { checkMachineConfigs(t, r) })
			t.Run("ignition", func(t *testing.T) { checkIgnition(t, r) })
			t.Run("butane", func(t *testing.T) { checkButane(t, r) })
			t.Run("pods", func(t *testing.T) { checkPods(t, r) })
			t.Run("manifests", func(t *testing.T) { checkManifests(t, r) })
			t.Run("keepalived", func(t *testing.T) { checkKeepalived(t, r) })
			t.Run("haproxy", func(t *testing.T) { checkHAProxy(t, r) })
		})
	}
}

// TestCasesAgain renders every case twice; TestCases does so only for those with whole trees.
func TestCasesAgain(t *testing.T) {
	testkit.Long(t)
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checkAgain(t, c, c.result(t))
		})
	}
}

// checkExpected compares a result with the case's expected folder, or writes
// that folder.
func checkExpected(t *testing.T, c clusterCase, r result) {
	dir := filepath.Join(c.dir, "expected")
	got := expected(t, r, encoded[c.name])
	if *trees != "" {
		writeTree(t, filepath.Join(*trees, c.name), got)
	}
	if !slices.Contains(whole, c.name) {
		got = differences(t, r)
	}
	if *update {
		writeTree(t, dir, got)
	}
	want := readTree(t, dir)
	paths := slices.Concat(slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		switch {
		case got[path] == nil:
			t.Errorf("%s is expected and not there", path)
		case want[path] == nil:
			t.Errorf("%s is there and not expected", path)
		case !bytes.Equal(got[path], want[path]):
			t.Errorf("%s differs (-expected +got):\n%s", path, cmp.Diff(string(want[path]), string(got[path])))
		}
	}
	if t.Failed() {
		t.Log("if that is right: go test ./golden -run TestCases -update, and read the diff")
	}
}

// writeTree replaces a directory.
func writeTree(t *testing.T, dir string, all files) {
	t.Helper()
	testkit.Must(t, os.RemoveAll(dir))
	for path, data := range all {
		path = filepath.Join(dir, filepath.FromSlash(path))
		testkit.WriteFile(t, path, data)
	}
}

// checkAgain: the same input renders to the same bytes, from any directory.
func checkAgain(t *testing.T, c clusterCase, r result) {
	moved := clusterCase{name: c.name, dir: filepath.Join(t.TempDir(), "moved")}
	testkit.Must(t, os.CopyFS(moved.dir, os.DirFS(c.dir)))
	if !reflect.DeepEqual(moved.run(t), r) {
		t.Error("a second run, of a copy of the case, gives something else")
	}
}

// daemons returns the daemons of the case's release; the oldest if it names none.
func (c clusterCase) daemons(t testing.TB, n *v1alpha1.Node) assets.Daemons {
	t.Helper()
	version := ""
	for _, flag := range c.args(t, "") {
		if v, ok := strings.CutPrefix(flag, "--openshift-version="); ok {
			version = v
		}
	}
	d := assets.DaemonsOf(version)
	if n.HAProxy != "" {
		d.HAProxy = n.HAProxy // the node's facts are more precise
	}
	return d
}

// TestHardCase29Generations: configurations rendered for a release are accepted by its daemons
// and all later ones, of all available generations; where the case names no release, by all of
// them. The installed generation is part of TestCases.
func TestHardCase29Generations(t *testing.T) {
	testkit.Long(t)
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.result(t)
			for _, g := range daemon.Generations {
				if g == daemon.Installed {
					continue
				}
				eachNode(t, r, v1alpha1.KeepalivedConf, func(t *testing.T, node string, conf []byte) {
					if g.RunsKeepalived(c.daemons(t, c.facts(t, r, node))) {
						g.CheckKeepalived(t, conf)
					}
				})
				eachNode(t, r, v1alpha1.HAProxyConf, func(t *testing.T, node string, cfg []byte) {
					if g.RunsHAProxy(c.daemons(t, c.facts(t, r, node))) {
						g.CheckHAProxy(t, cfg)
					}
				})
			}
		})
	}
}
