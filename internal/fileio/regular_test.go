package fileio

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// swapped pretends that a FIFO is a regular file, like one that replaces a file after the
// check.
type swapped struct {
	FS
	file string
}

func (s swapped) Stat(string) (os.FileInfo, error) { return os.Stat(s.file) }

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testkit.WriteFile(t, at("file"), []byte("text"))
	testkit.Must(t, errors.Join(os.Symlink("file", at("link")), syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/tty", at("tty")), os.Symlink("fifo", at("linked"))))
	below, err := os.OpenRoot(dir)
	testkit.Must(t, err)
	testkit.Cleanup(t, below.Close)
	for _, c := range []struct {
		name string
		root Root
		want error
	}{
		{"file", below, nil}, {"link", below, nil}, {"fifo", below, ErrOther}, {"linked", below, ErrOther}, {".", below, syscall.EISDIR}, {"none", below, os.ErrNotExist},
		{at("file"), FS{}, nil}, {at("link"), FS{}, nil}, {at("fifo"), FS{}, ErrOther}, {at("tty"), FS{}, ErrOther}, {"/dev/null", FS{}, ErrOther},
		{at("fifo"), swapped{file: at("file")}, ErrOther},
	} {
		f, err := Open(c.root, c.name)
		testkit.Is(testkit.In(t, c.name), err, c.want)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", c.name, text, err)
		}
	}
}
