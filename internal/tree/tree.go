// Package tree writes generated files atomically into a directory that others write to as well:
// it removes files that it wrote before and no longer does, and leaves everything else alone.
package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Dir is the directory for the files.
type Dir struct {
	// Path is the directory; it is created if missing.
	Path string
	// Owned is a pattern (as in path.Match) of the paths that are always vipgen's. If empty, a
	// record in the directory lists them.
	Owned string
	// Overwrite allows replacing files that vipgen did not write.
	Overwrite bool
	// Gone removes all files of vipgen's.
	Gone bool
	// Part is set where the files are only a part: others that vipgen wrote stay, and stay
	// vipgen's.
	Part bool
}

// Record is the name of the file that lists vipgen's files, one path per line.
const Record = ".vipgen-files"

// Kind is the kind of a difference.
type Kind string

const (
	Missing Kind = "missing"            // to be written, not there
	Differs Kind = "differs"            // there with other contents
	Stale   Kind = "no longer rendered" // written before, to be removed
)

// Change is a file that differs.
type Change struct {
	Path      string
	Kind      Kind
	Have, Got []byte // existing and rendered contents
}

// Compare returns what Write would change, by path.
func (d Dir) Compare(files []render.OutputFile) ([]Change, error) {
	if err := checkPaths(files); err != nil {
		return nil, err
	}
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	if root != nil {
		defer root.Close()
	}
	own, err := d.recorded(root)
	if err != nil {
		return nil, err
	}
	return d.compare(root, files, own)
}

// open opens the directory, or returns nil if it is missing. It confines access to the
// directory, whatever links are in it.
func (d Dir) open() (*os.Root, error) {
	root, err := os.OpenRoot(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

func (d Dir) read(root *os.Root, p string) ([]byte, error) {
	if root == nil {
		return nil, fs.ErrNotExist
	}
	f, err := fileio.Open(root, p)
	if err != nil {
		return nil, d.failure(p, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return data, d.failure(p, err)
}

// failure names the file of an error in the user's form.
func (d Dir) failure(p string, err error) error { return named(d.abs(p), err) }

// named replaces the name in an error of a system call, which may be of a temporary file, by
// the user's.
func named(name string, err error) error {
	var inner *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &inner):
		err = inner.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (d Dir) compare(root *os.Root, files []render.OutputFile, own []string) ([]Change, error) {
	var out []Change
	for _, f := range d.withRecord(files, own) {
		have, err := d.read(root, f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out = append(out, Change{Path: f.Path, Kind: Missing, Got: f.Data})
		case err != nil:
			return nil, err
		case !bytes.Equal(have, f.Data):
			out = append(out, Change{Path: f.Path, Kind: Differs, Have: have, Got: f.Data})
		}
	}
	for _, p := range d.stale(root, files, own) {
		have, err := d.read(root, p)
		if err != nil {
			return nil, err
		}
		out = append(out, Change{Path: p, Kind: Stale, Have: have})
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// checkPaths rejects paths that the record cannot hold: it has one path per line.
func checkPaths(files []render.OutputFile) error {
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case !filepath.IsLocal(filepath.FromSlash(f.Path)), path.Clean(f.Path) != f.Path, f.Path == ".", f.Path == Record, strings.ContainsAny(f.Path, "\r\n"):
			return fmt.Errorf("%q is not a path of a file", f.Path)
		case seen[f.Path]:
			return fmt.Errorf("%q: two files with one path", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

// Result counts what a Write did.
type Result struct{ Written, Unchanged, Removed int }

// In describes the result for a directory.
func (r Result) In(dir string) string {
	s := fmt.Sprintf("wrote %d files to %s (%d changed", r.Written+r.Unchanged, dir, r.Written)
	if r.Removed > 0 {
		s += fmt.Sprintf(", %d removed", r.Removed)
	}
	return s + ")"
}

// String describes the result.
func (r Result) String() string {
	s := fmt.Sprintf("%d files written, %d unchanged", r.Written, r.Unchanged)
	if r.Removed > 0 {
		s += fmt.Sprintf(", %d removed", r.Removed)
	}
	return s
}

// Write updates the directory to the given files. Files with the same bytes are not touched. On
// an error the directory is unchanged.
func (d Dir) Write(files []render.OutputFile) (Result, error) {
	if err := checkPaths(files); err != nil {
		return Result{}, err
	}
	if err := d.notRoot(); err != nil {
		return Result{}, err
	}
	root, err := d.open()
	if err != nil {
		return Result{}, err
	}
	if root != nil {
		defer root.Close()
	}
	own, err := d.recorded(root)
	if err != nil {
		return Result{}, err
	}
	changes, err := d.compare(root, files, own)
	if err != nil {
		return Result{}, err
	}
	if err := d.refuseForeign(changes, own); err != nil {
		return Result{}, err
	}
	r := Result{Unchanged: len(files)}
	for _, c := range changes {
		switch {
		case c.Path == Record:
		case c.Kind == Stale:
			r.Removed++
		default:
			r.Written++
			r.Unchanged--
		}
	}
	if len(changes) == 0 {
		return r, nil
	}
	return r, d.apply(changes)
}

// notRoot rejects the root of a file system, however it is spelled.
func (d Dir) notRoot() error {
	abs, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if filepath.Dir(abs) == abs {
		return problem.List{{File: d.Path, Severity: problem.Error, Code: problem.BadValue, Found: "the root of a file system", Expected: "a directory for files of vipgen"}}
	}
	return nil
}

// refuseForeign rejects changes of files that vipgen did not write.
func (d Dir) refuseForeign(changes []Change, own []string) error {
	if d.Overwrite || d.Owned != "" {
		return nil
	}
	var foreign []string
	for _, c := range changes {
		if c.Kind == Differs && c.Path != Record && !slices.Contains(own, c.Path) {
			foreign = append(foreign, d.abs(c.Path))
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("not written by vipgen, and different: %s; move them, or give --overwrite", strings.Join(foreign, ", "))
	}
	return nil
}

func (d Dir) abs(p string) string { return filepath.Join(d.Path, filepath.FromSlash(p)) }

func (d Dir) withRecord(files []render.OutputFile, own []string) []render.OutputFile {
	if d.Owned != "" || d.Gone {
		return files
	}
	var paths []string
	if d.Part {
		paths = slices.Clone(own)
	}
	return append(slices.Clone(files), RecordOf(files, paths...))
}

// RecordOf returns the record of a directory with the files, and with others of those paths.
func RecordOf(files []render.OutputFile, paths ...string) render.OutputFile {
	paths = append(paths, lists.Map(files, func(f render.OutputFile) string { return f.Path })...)
	slices.Sort(paths)
	return render.OutputFile{Path: Record, Data: []byte(strings.Join(slices.Compact(paths), "\n") + "\n")}
}

// stale returns existing files that vipgen wrote before, and that are not among the given ones.
func (d Dir) stale(root *os.Root, files []render.OutputFile, own []string) []string {
	if d.Part {
		return nil
	}
	given := map[string]bool{}
	for _, f := range files {
		given[f.Path] = true
	}
	var out []string
	if d.Gone {
		own = append(slices.Clone(own), Record)
	}
	for _, p := range own {
		if given[p] {
			continue
		}
		if info, err := root.Lstat(p); err == nil && info.Mode().IsRegular() {
			out = append(out, p)
		}
	}
	return out
}

// recorded returns the paths that are vipgen's. Paths that lead out of the directory are
// ignored.
func (d Dir) recorded(root *os.Root) ([]string, error) {
	if root == nil {
		return nil, nil
	}
	if d.Owned != "" {
		return fs.Glob(root.FS(), d.Owned)
	}
	data, err := d.read(root, Record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if p := strings.TrimRight(line, "\r\n"); checkPaths([]render.OutputFile{{Path: p}}) == nil {
			out = append(out, p)
		}
	}
	return out, nil
}
