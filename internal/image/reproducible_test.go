package image

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestReproducible makes a release from two copies of the source in different places, like
// `make release`: the second one with another user's settings and an empty build cache, since
// Go would otherwise compare its cache with itself. Every file is the same.
func TestReproducible(t *testing.T) {
	testkit.Only(t, "release-check")
	dir := t.TempDir()
	outputs := map[string]map[string]string{}
	for _, c := range []struct{ place, prepare string }{
		{"one", ""},
		{"two/deeper", "umask 077; export LC_ALL=C TZ=Pacific/Auckland GOAMD64=v2 GOFLAGS=-p=2 GOCACHE=" + filepath.Join(dir, "cache")},
	} {
		source := filepath.Join(dir, c.place)
		copySource(t, source)
		tool := filepath.Join(dir, "tool")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", tool, "./cmd/image")
		build.Dir = filepath.Join(source, "internal/image")
		testkit.Run(t, build)
		make := exec.Command("/bin/sh", "-c", c.prepare+"\nexec "+tool+" release --source . --version v1.2.3 --output out")
		make.Dir = source
		make.Stderr = os.Stderr
		if _, err := make.Output(); err != nil {
			t.Fatal(err)
		}
		outputs[c.place] = sumsOf(t, filepath.Join(source, "out"))
	}
	one, two := outputs["one"], outputs["two/deeper"]
	for name := range two {
		if one[name] == "" {
			t.Errorf("only the second one made %s", name)
		}
	}
	testkit.Equal(t, 4+len(Platforms())+2*len(ArchivePlatforms()), len(one))
	for name, sum := range one {
		if two[name] != sum {
			t.Errorf("%s: %s and %s", name, sum, two[name])
		}
	}
}

func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		out[e.Name()] = fileSum(t, filepath.Join(dir, e.Name()))
	}
	return out
}

// copySource copies the checkout except for the files in .containerignore.
func copySource(t *testing.T, to string) {
	t.Helper()
	ignored := strings.Fields(string(testkit.ReadFile(t, filepath.Join(top, ".containerignore"))))
	for _, name := range ignored {
		if strings.ContainsAny(name, "*!/") {
			t.Fatalf(".containerignore: %s: this test takes names only", name)
		}
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		for _, i := range ignored {
			if name == i && d.IsDir() {
				return filepath.SkipDir
			}
			if name == i {
				return nil
			}
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is neither file nor directory", name)
			return nil
		}
		return os.WriteFile(filepath.Join(to, name), testkit.ReadFile(t, path), 0o644)
	})
	testkit.Must(t, err)
}
