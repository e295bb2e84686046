package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/tree"
)

// encoded are the cases whose encoded forms are compared: one of the oldest and one of the
// newest OpenShift version.
var encoded = map[string]bool{"openshift-4.12": true, "openshift-4.22": true}

// files are files by their paths relative to some root, with slashes.
type files map[string][]byte

// clusterCase is one folder of cases.
type clusterCase struct {
	name string
	dir  string
}

func allCases(t testing.TB) []clusterCase {
	t.Helper()
	entries, err := os.ReadDir("cases")
	testkit.Must(t, err)
	var all []clusterCase
	for _, e := range entries {
		all = append(all, clusterCase{name: e.Name(), dir: filepath.Join("cases", e.Name())})
	}
	return all
}

// result holds all outputs for a case.
type result struct {
	// validate has the report and the summary, with paths relative to the case.
	validate []byte
	// rendered is the tree of vipgen render with all formats.
	rendered files
	// previews are the nodes' files by their paths on the node.
	previews map[string]files
}

// results caches results by name of the case, for all tests.
var results sync.Map // of *shared

// shared is a result that one test creates and all use.
type shared struct {
	sync.Mutex
	*result
}

// result returns the outputs for a case. Tests share it and must not modify it.
func (c clusterCase) result(t testing.TB) result {
	t.Helper()
	value, _ := results.LoadOrStore(c.name, &shared{})
	s := value.(*shared)
	s.Lock()
	defer s.Unlock()
	if s.result == nil {
		r := c.run(t)
		s.result = &r
	}
	return *s.result
}

// run runs vipgen on a case.
func (c clusterCase) run(t testing.TB) result {
	t.Helper()
	out, report := vipgen(t, c.args(t, "validate")...)
	r := result{
		validate: bytes.ReplaceAll(append(report, out...), []byte(c.dir+"/"), nil),
		previews: map[string]files{},
	}
	dir := t.TempDir()
	vipgen(t, c.args(t, "render", "--format=machineconfig,ignition,butane,files", "--dir="+dir)...)
	r.rendered = readTree(t, dir)
	for node, flags := range c.nodes(t) {
		dir := t.TempDir()
		vipgen(t, c.args(t, "preview", append(flags, "--dir="+dir)...)...)
		r.previews[node] = readTree(t, dir)
	}
	return r
}

// input returns the file that describes the case's cluster.
func (c clusterCase) input(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"install-config.yaml", "clusterinstance.yaml", "agentclusterinstall.yaml", "siteconfig.yaml"} {
		if path := filepath.Join(c.dir, name); exists(t, path) {
			return path
		}
	}
	t.Fatalf("%s has no file that describes a cluster", c.dir)
	return ""
}

// args returns the arguments of a command for the case's input.
func (c clusterCase) args(t testing.TB, command string, more ...string) []string {
	t.Helper()
	args := append([]string{command, c.input(t)}, more...)
	if release := filepath.Join(c.dir, "release.json"); exists(t, release) {
		args = append(args, "--release-info="+release)
	}
	if flags := filepath.Join(c.dir, "flags"); exists(t, flags) {
		args = append(args, readFlags(t, flags)...)
	}
	return args
}

// nodes returns the flags of preview for every node of the case.
func (c clusterCase) nodes(t testing.TB) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.dir, "nodes", "*"))
	testkit.Must(t, err)
	all := map[string][]string{}
	for _, path := range paths {
		switch name := filepath.Base(path); filepath.Ext(name) {
		case ".yaml":
			all[strings.TrimSuffix(name, ".yaml")] = []string{"--facts=" + path}
		case ".flags":
			all[strings.TrimSuffix(name, ".flags")] = readFlags(t, path)
		default:
			t.Fatalf("%s is neither facts (.yaml) nor flags (.flags)", path)
		}
	}
	return all
}

// readFlags reads flags from a file, without lines that begin with #.
func readFlags(t testing.TB, path string) []string {
	t.Helper()
	var flags []string
	for line := range strings.Lines(string(testkit.ReadFile(t, path))) {
		if !strings.HasPrefix(line, "#") {
			flags = append(flags, strings.Fields(line)...)
		}
	}
	return flags
}

// vipgen runs a command line that must succeed, and returns its two outputs.
func vipgen(t testing.TB, args ...string) (out, report []byte) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cli.Run(args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("vipgen %s: exit code %d\n%s", strings.Join(args, " "), code, stderr.Bytes())
	}
	return stdout.Bytes(), stderr.Bytes()
}

// cluster reads the ClusterConfig of a pool of the case's result.
func (r result) cluster(t testing.TB) *v1alpha1.ClusterConfig {
	t.Helper()
	path := "files/" + v1alpha1.RoleMaster + v1alpha1.ClusterConfigPath
	c, err := v1alpha1.LoadClusterConfig(path, r.rendered[path])
	testkit.Must(t, err)
	return c
}

// below returns the files of a folder, by their paths in it.
func (f files) below(dir string) files {
	found := files{}
	for path, data := range f {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			found[rest] = data
		}
	}
	return found
}

// readTree reads all files of a directory, except for vipgen's record of written files.
func readTree(t testing.TB, dir string) files {
	t.Helper()
	found := files{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == tree.Record {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = data
		return err
	})
	testkit.Must(t, err)
	return found
}

func exists(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}
