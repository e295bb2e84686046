package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// File is an entry of a root file system. It belongs to root.
type File struct {
	// Path is absolute and clean.
	Path string
	// Mode is permissions, and fs.ModeDir or fs.ModeSymlink.
	Mode fs.FileMode
	// Link is the target of a symbolic link.
	Link string
	// Source is the file of this machine with the content; if empty, Data is it.
	Source string
	Data   []byte
}

// Rootfs is the content of an image. The zero value is empty.
type Rootfs struct{ files map[string]File }

// Add adds an entry and its parent directories (mode 0755). Adding the same one twice is fine;
// a different one at its path is an error.
func (r *Rootfs) Add(f File) error {
	if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
		return fmt.Errorf("%q is not a clean absolute path", f.Path)
	}
	if f.Mode&^(fs.ModePerm|fs.ModeDir|fs.ModeSymlink) != 0 {
		return fmt.Errorf("%s: mode %v: only plain files, directories and links are supported", f.Path, f.Mode)
	}
	if r.files == nil {
		r.files = map[string]File{}
	}
	for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
		above, ok := r.files[dir]
		if ok && !above.Mode.IsDir() {
			return fmt.Errorf("%s: %s is not a directory", f.Path, dir)
		}
		if !ok {
			r.files[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
		}
	}
	if old, ok := r.files[f.Path]; ok && !old.same(f) {
		return fmt.Errorf("%s is there already and differs", f.Path)
	}
	r.files[f.Path] = f
	return nil
}

func (f File) same(g File) bool {
	return f.Mode == g.Mode && f.Link == g.Link && f.Source == g.Source && bytes.Equal(f.Data, g.Data)
}

// Files lists all entries, directories before their content.
func (r *Rootfs) Files() []File {
	out := make([]File, 0, len(r.files))
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		out = append(out, r.files[name])
	}
	return out
}

// open opens the content of a regular file.
func (f File) open() (io.ReadCloser, error) {
	if f.Source == "" {
		return io.NopCloser(bytes.NewReader(f.Data)), nil
	}
	return os.Open(f.Source)
}

// tar writes all entries with the given time.
func (r *Rootfs) tar(w io.Writer, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range r.Files() {
		if err := f.tar(t, at); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return t.Close()
}

func (f File) tar(w *tar.Writer, at time.Time) error {
	h := &tar.Header{Name: f.Path[1:], Mode: int64(f.Mode.Perm()), ModTime: at}
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	case f.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		return w.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Data))
	if f.Source != "" {
		info, err := os.Stat(f.Source)
		if err != nil {
			return err
		}
		h.Size = info.Size()
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	from, err := f.open()
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(w, from)
	return err
}

// Unpack writes all entries below an empty directory, whatever the umask is, owned by the
// current user.
func (r *Rootfs) Unpack(dir string, at time.Time) error {
	files := r.Files()
	for _, f := range files {
		if err := f.unpack(filepath.Join(dir, f.Path)); err != nil {
			return err
		}
	}
	for _, f := range slices.Backward(files) { // directories last: entries change their time
		if f.Mode&fs.ModeSymlink != 0 {
			continue
		}
		if err := os.Chtimes(filepath.Join(dir, f.Path), at, at); err != nil {
			return err
		}
	}
	return nil
}

func (f File) unpack(to string) error {
	switch {
	case f.Mode.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		return os.Chmod(to, f.Mode.Perm())
	case f.Mode&fs.ModeSymlink != 0:
		return os.Symlink(f.Link, to)
	}
	from, err := f.open()
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, from); err != nil {
		return err
	}
	if err := out.Chmod(f.Mode.Perm()); err != nil {
		return err
	}
	return out.Close()
}
