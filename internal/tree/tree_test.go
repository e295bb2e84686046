package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// lay writes files into a directory; a path that ends with a slash is a
// directory.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for p, text := range files {
		name := filepath.Join(dir, p)
		if strings.HasSuffix(p, "/") {
			testkit.Must(t, os.MkdirAll(name, 0o755))
			continue
		}
		testkit.WriteFile(t, name, []byte(text))
	}
}

// snapshot reads everything under a directory: files with their text,
// directories as "" under a path that ends with a slash.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if e.IsDir() {
			out[rel+"/"] = ""
			return nil
		}
		text, err := os.ReadFile(p)
		out[rel] = string(text)
		return err
	})
	testkit.Must(t, err)
	return out
}

func file(p, text string) render.OutputFile { return render.OutputFile{Path: p, Data: []byte(text)} }

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		dir    Dir // Path is filled in
		before map[string]string
		files  []render.OutputFile
		want   string // Result
		after  map[string]string
		err    string // part of the error; the directory stays as it was
	}{
		{name: "into nothing", files: []render.OutputFile{file("a/b", "1"), file("c", "2")}, want: "2 files written, 0 unchanged",
			after: map[string]string{"a/": "", "a/b": "1", "c": "2", Record: "a/b\nc\n"}},
		{name: "again", before: map[string]string{"a/b": "1", "c": "2", Record: "a/b\nc\n"}, files: []render.OutputFile{file("c", "2"), file("a/b", "1")},
			want: "0 files written, 2 unchanged", after: map[string]string{"a/": "", "a/b": "1", "c": "2", Record: "a/b\nc\n"}},
		{name: "stale files and the folders that they leave empty go, those of others stay",
			before: map[string]string{"a/b/c": "1", "a/mine": "x", "d/e/f": "2", Record: "a/b/c\nd/e/f\n"}, files: []render.OutputFile{file("g", "3")},
			want: "1 files written, 0 unchanged, 2 removed", after: map[string]string{"a/": "", "a/mine": "x", "g": "3", Record: "g\n"}},
		{name: "a file of another is refused", before: map[string]string{"a": "mine"}, files: []render.OutputFile{file("a", "1"), file("b", "2")},
			err: "not written by vipgen, and different: "},
		{name: "a file of another with the same contents becomes vipgen's", before: map[string]string{"a": "1"}, files: []render.OutputFile{file("a", "1")},
			want: "0 files written, 1 unchanged", after: map[string]string{"a": "1", Record: "a\n"}},
		{name: "a file of another is replaced when told so", dir: Dir{Overwrite: true}, before: map[string]string{"a": "mine"},
			files: []render.OutputFile{file("a", "1")}, want: "1 files written, 0 unchanged", after: map[string]string{"a": "1", Record: "a\n"}},
		{name: "a file that vipgen wrote is replaced", before: map[string]string{"a": "0", Record: "a\n"}, files: []render.OutputFile{file("a", "1")},
			want: "1 files written, 0 unchanged", after: map[string]string{"a": "1", Record: "a\n"}},
		{
			name: "owned by pattern", dir: Dir{Owned: "openshift/99_vipgen_*.yaml"},
			before: map[string]string{"openshift/99_vipgen_old.yaml": "0", "openshift/99_other.yaml": "x", "openshift/99_vipgen_a.yaml": "0"},
			files:  []render.OutputFile{file("openshift/99_vipgen_a.yaml", "1")}, want: "1 files written, 0 unchanged, 1 removed",
			after: map[string]string{"openshift/": "", "openshift/99_other.yaml": "x", "openshift/99_vipgen_a.yaml": "1"},
		},
		{name: "some of the files: the others stay, and stay vipgen's", dir: Dir{Part: true},
			before: map[string]string{"a": "0", "b": "1", "mine": "x", Record: "a\nb\n"}, files: []render.OutputFile{file("a", "1"), file("c", "2")},
			want: "2 files written, 0 unchanged", after: map[string]string{"a": "1", "b": "1", "c": "2", "mine": "x", Record: "a\nb\nc\n"}},
		{name: "a record with paths that lead out, or are no paths, is not believed",
			before: map[string]string{"a": "x", Record: "../secret\n/etc/passwd\na/../a\n\n.\n" + Record + "\n"}, files: []render.OutputFile{file("b", "1")},
			want: "1 files written, 0 unchanged", after: map[string]string{"a": "x", "b": "1", Record: "b\n"}},
		{name: "a directory where a file must go, after others were swapped in", before: map[string]string{"a": "0", "m/": "", "z": "0", Record: "a\nm\nz\n"},
			files: []render.OutputFile{file("a", "1"), file("b/c/d", "2"), file("m", "3")}, err: "is a directory"},
		{name: "a file where a directory must go", before: map[string]string{"a": "0", "n": "x", Record: "a\n"},
			files: []render.OutputFile{file("a", "1"), file("n/o", "2")}, err: "not a directory"},
		{name: "a path that leads out", files: []render.OutputFile{file("../a", "1")}, err: "is not a path of a file"},
		{name: "an absolute path", files: []render.OutputFile{file("/a", "1")}, err: "is not a path of a file"},
		{name: "a path that would be two in the record", files: []render.OutputFile{file("a\nb", "1")}, err: "is not a path of a file"},
		{name: "the record", files: []render.OutputFile{file(Record, "1")}, err: "is not a path of a file"},
		{name: "one path twice", files: []render.OutputFile{file("a", "1"), file("a", "2")}, err: "two files with one path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			lay(t, top, map[string]string{"secret": "x"})
			tt.dir.Path = filepath.Join(top, "out")
			if tt.before != nil {
				lay(t, tt.dir.Path, tt.before)
			}
			before := snapshot(t, top)
			got, err := tt.dir.Write(tt.files)
			if tt.err != "" {
				testkit.Fails(t, err, tt.err)
				testkit.Equal(t, before, snapshot(t, top))
				return
			}
			testkit.Must(t, err)
			testkit.Equal(t, tt.want, got.String())
			testkit.Equal(t, tt.after, snapshot(t, tt.dir.Path))
			if changes, err := tt.dir.Compare(tt.files); err != nil || len(changes) > 0 {
				t.Errorf("Compare after Write: %v, %v", changes, err)
			}
		})
	}
}

// The rename of the last file fails after all others were renamed.
func TestWriteRestores(t *testing.T) {
	dir := Dir{Path: filepath.Join(t.TempDir(), "out")}
	lay(t, dir.Path, map[string]string{"a": "0", "stale/b": "1", "z/": "", Record: "a\nstale/b\n"})
	before := snapshot(t, dir.Path)
	changes := []Change{
		{Path: "a", Kind: Differs, Got: []byte("1")},
		{Path: "new/deep/c", Kind: Missing, Got: []byte("2")},
		{Path: "stale/b", Kind: Stale},
		{Path: "z", Kind: Missing, Got: []byte("3")},
	}
	err := dir.apply(changes)
	testkit.Fails(t, err, filepath.Join(dir.Path, "z"))
	testkit.Equal(t, before, snapshot(t, dir.Path))
}

// A link in the directory is not followed: neither to remove files nor to write them.
func TestWriteStaysInside(t *testing.T) {
	for _, tt := range []struct {
		name   string
		record string
		files  []render.OutputFile
		fails  bool
	}{
		{"stale", "link/secret\n", []render.OutputFile{file("a", "1")}, false},
		{"written", "", []render.OutputFile{file("link/secret", "1")}, true},
		{"missing", "", []render.OutputFile{file("link/new", "1")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			lay(t, top, map[string]string{"outside/secret": "x", "out/" + Record: tt.record})
			testkit.Must(t, os.Symlink("../outside", filepath.Join(top, "out/link")))
			_, err := Dir{Path: filepath.Join(top, "out"), Overwrite: true}.Write(tt.files)
			testkit.Equal(testkit.In(t, err), tt.fails, err != nil)
			testkit.Equal(t, map[string]string{"secret": "x"}, snapshot(t, filepath.Join(top, "outside")))
		})
	}
}

func TestWriteLeavesEqualFilesAlone(t *testing.T) {
	dir := Dir{Path: t.TempDir()}
	_, err := dir.Write([]render.OutputFile{file("a", "1"), file("b", "1")})
	testkit.Must(t, err)
	old := time.Unix(1e9, 0)
	for _, name := range []string{"a", "b"} {
		testkit.Must(t, os.Chtimes(filepath.Join(dir.Path, name), old, old))
	}
	_, err = dir.Write([]render.OutputFile{file("a", "1"), file("b", "2")})
	testkit.Must(t, err)
	for name, same := range map[string]bool{"a": true, "b": false} {
		info, err := os.Stat(filepath.Join(dir.Path, name))
		testkit.Must(t, err)
		testkit.Equal(testkit.In(t, name, info.ModTime()), same, info.ModTime().Equal(old))
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.ign")
	testkit.Must(t, os.WriteFile(name, []byte("old"), 0o600))
	testkit.Must(t, WriteFile(name, []byte("new")))
	info, err := os.Stat(name)
	testkit.Must(t, err)
	testkit.Equal(t, 0o600, info.Mode().Perm())
	missing := filepath.Join(dir, "none", "a")
	if err := WriteFile(missing, nil); err == nil || err.Error() != missing+": no such file or directory" {
		t.Errorf("without a directory: %v", err)
	}
	testkit.Equal(t, map[string]string{"a.ign": "new"}, snapshot(t, dir))
}

// The remains of a killed run are removed by the next one; those of a run in progress stay.
func TestStagesOfOthers(t *testing.T) {
	dir := t.TempDir()
	left, used := filepath.Join(dir, stagePrefix+"1"), filepath.Join(dir, stagePrefix+"2")
	lay(t, dir, map[string]string{stagePrefix + "1/0.new": "x", stagePrefix + "2/0.new": "y"})
	inUse, err := lock(used)
	testkit.Must(t, err)
	write := func() {
		t.Helper()
		os.Remove(filepath.Join(dir, "a"))
		_, err := (Dir{Path: dir}).Write([]render.OutputFile{{Path: "a", Data: []byte("a\n")}})
		testkit.Must(t, err)
	}
	write()
	_, err = os.Stat(left)
	testkit.Is(t, err, fs.ErrNotExist)
	_, err = os.Stat(filepath.Join(used, "0.new"))
	testkit.Check(t, err)
	inUse.Close()
	write()
	_, err = os.Stat(used)
	testkit.Is(t, err, fs.ErrNotExist)
}
