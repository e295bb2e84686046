package pods

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// nodeName is the suffix that kubelet adds to the names of static pods.
const nodeName = "node-0.example.com"

// period is the interval in which kubelet's source reads its directory again; a node's own
// does so every 20 s.
const period = time.Millisecond

// patience is the time limit for operations that take milliseconds on an idle
// machine.
const patience = 2 * time.Minute

// source is kubelet's source of static pods, which reads a directory by a link.
// There is one for all tests: it never ends.
type source struct {
	link    string
	updates chan any
}

// TestMain creates the source.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "vipgen-pods-")
	if err != nil {
		panic(err)
	}
	empty := filepath.Join(dir, "empty")
	kubelet = source{link: filepath.Join(dir, "manifests"), updates: make(chan any)}
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Symlink(empty, kubelet.link)); err != nil {
		panic(err)
	}
	config.NewSourceFile(kubelet.link, nodeName, period, kubelet.updates)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var kubelet source

// read returns the pods that kubelet reads from the files of a directory. It prints what it says of
// files that it rejects.
func (s source) read(t *testing.T, files map[string][]byte) []*corev1.Pod {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	must(t, os.Symlink(dir, s.link+".new"))
	must(t, os.Rename(s.link+".new", s.link))
	s.update(t) // the channel has no buffer: at most one update has the previous files
	return s.update(t)
}

func (s source) update(t *testing.T) []*corev1.Pod {
	t.Helper()
	select {
	case u := <-s.updates:
		return u.(kubetypes.PodUpdate).Pods
	case <-time.After(patience):
		t.Fatal("kubelet does not read its directory")
		return nil
	}
}

// trees has all files of every golden case, as written by `make test-e2e`.
const trees = "../../../.cache/golden"

// pools returns the expected manifests on the nodes of each pool of each golden case, by case
// and pool, then by file name.
func pools(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	const every = "every-pool"
	dirs, err := filepath.Glob(trees + "/*/files/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no golden cases in %s, %v; run: make golden-trees", trees, err)
	}
	all := map[string]map[string][]byte{}
	for _, dir := range dirs {
		if filepath.Base(dir) == every {
			continue
		}
		files := manifests(t, filepath.Join(filepath.Dir(dir), every))
		maps.Copy(files, manifests(t, dir))
		name := filepath.Base(filepath.Join(dir, "../.."))
		all[name+"/"+filepath.Base(dir)] = files
	}
	return all
}

func manifests(t *testing.T, pool string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(pool, "etc/kubernetes/manifests/*"))
	must(t, err)
	files := map[string][]byte{}
	for _, path := range paths {
		files[filepath.Base(path)], err = os.ReadFile(path)
		must(t, err)
	}
	return files
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
