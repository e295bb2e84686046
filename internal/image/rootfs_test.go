package image

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestRootfsAdd(t *testing.T) {
	file := func(path string) File { return File{Path: path, Mode: 0o644, Data: []byte("a")} }
	for name, c := range map[string]struct {
		add  []File
		want string // part of the error
	}{
		"twice":         {[]File{file("/a/b"), file("/a/b")}, ""},
		"two":           {[]File{file("/a/b"), file("/a/c")}, ""},
		"different":     {[]File{file("/a"), {Path: "/a", Mode: 0o755}}, "differs"},
		"relative":      {[]File{file("a")}, "not a clean absolute path"},
		"not clean":     {[]File{file("/a/../b")}, "not a clean absolute path"},
		"root":          {[]File{file("/")}, "not a clean absolute path"},
		"below a file":  {[]File{file("/a"), file("/a/b")}, "/a is not a directory"},
		"device":        {[]File{{Path: "/a", Mode: fs.ModeDevice}}, "only plain files"},
		"set user ID":   {[]File{{Path: "/a", Mode: fs.ModeSetuid | 0o755}}, "only plain files"},
		"over a folder": {[]File{file("/a/b"), file("/a")}, "differs"},
	} {
		var r Rootfs
		var err error
		for _, f := range c.add {
			if err = r.Add(f); err != nil {
				break
			}
		}
		if c.want == "" {
			testkit.Check(testkit.In(t, name), err)
		} else {
			testkit.Fails(testkit.In(t, name), err, c.want)
		}
	}
}

func sample(t *testing.T) *Rootfs {
	t.Helper()
	source := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(source, []byte("program"), 0o600))
	var r Rootfs
	for _, f := range []File{
		{Path: "/usr/bin/x", Mode: 0o755, Source: source},
		{Path: "/usr/bin-x", Mode: 0o644, Data: []byte("data")},
		{Path: "/bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"},
		{Path: "/tmp", Mode: fs.ModeDir | 0o700},
	} {
		testkit.Must(t, r.Add(f))
	}
	return &r
}

func TestRootfsUnpack(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	at := time.Unix(1_000_000_000, 0)
	dir := t.TempDir()
	r := sample(t)
	testkit.Must(t, r.Unpack(dir, at))
	for _, f := range r.Files() {
		info, err := os.Lstat(filepath.Join(dir, f.Path))
		testkit.Must(t, err)
		if info.Mode() != f.Mode {
			t.Errorf("%s: %v, want %v", f.Path, info.Mode(), f.Mode)
		}
		if f.Mode&fs.ModeSymlink == 0 && !info.ModTime().Equal(at) {
			t.Errorf("%s: %v, want %v", f.Path, info.ModTime(), at)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "bin")); target != "usr/bin" {
		t.Errorf("bin leads to %q, %v", target, err)
	}
	if err := r.Unpack(dir, at); err == nil {
		t.Error("no complaint about a directory that is not empty")
	}
}
