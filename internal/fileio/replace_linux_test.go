package fileio

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"golang.org/x/sys/unix"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func write(t *testing.T, path, data string, mode fs.FileMode) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(data), mode))
	testkit.Must(t, os.Chmod(path, mode))
}

func expect(t *testing.T, path, data string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	testkit.Must(t, err)
	testkit.Equal(t, mode, info.Mode())
	got := testkit.ReadFile(t, path)
	testkit.Equal(t, data, string(got))
}

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name    string
		before  func(t *testing.T, path string)
		data    string
		mode    fs.FileMode
		changed bool
		want    fs.FileMode
	}{
		{"new", func(*testing.T, string) {}, "b", 0o640, true, 0o640},
		{"new and empty", func(*testing.T, string) {}, "", 0o644, true, 0o644},
		{"other bytes", func(t *testing.T, p string) { write(t, p, "a", 0o600) }, "b", 0o644, true, 0o600},
		{"shorter", func(t *testing.T, p string) { write(t, p, "aaaa", 0o644) }, "b", 0o644, true, 0o644},
		{"same bytes", func(t *testing.T, p string) { write(t, p, "b", 0o600) }, "b", 0o644, false, 0o600},
		{"link to the same bytes", func(t *testing.T, p string) {
			write(t, p+".target", "b", 0o644)
			testkit.Must(t, os.Symlink(p+".target", p))
		}, "b", 0o644, true, 0o644},
		{"link to nothing", func(t *testing.T, p string) {
			testkit.Must(t, os.Symlink("nowhere", p))
		}, "b", 0o644, true, 0o644},
		{"left behind by a killed process", func(t *testing.T, p string) {
			write(t, tempName(p), "half of something long", 0o600)
		}, "b", 0o644, true, 0o644},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			tt.before(t, path)
			before, _ := os.Lstat(path)
			changed, err := Write(path, []byte(tt.data), tt.mode)
			if err != nil || changed != tt.changed {
				t.Fatalf("changed %v, error %v; want %v and none", changed, err, tt.changed)
			}
			expect(t, path, tt.data, tt.want)
			if after, _ := os.Lstat(path); !tt.changed && !os.SameFile(before, after) {
				t.Error("a file that was right was replaced")
			}
			if slices.Contains(names(t, filepath.Dir(path)), filepath.Base(tempName(path))) {
				t.Error("the temporary file is still there")
			}
		})
	}
}

func TestWriteKeepsOwnerAndLabel(t *testing.T) {
	testkit.Privileged(t)
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "a", 0o644)
	testkit.Must(t, os.Chown(path, 1234, 5678))
	label := []byte("system_u:object_r:net_conf_t:s0\x00")
	// A kernel without SELinux accepts any label, or none at all.
	labelled := unix.Lsetxattr(path, "security.selinux", label, 0) == nil
	_, err := Write(path, []byte("b"), 0o600)
	testkit.Must(t, err)
	expect(t, path, "b", 0o644)
	info, err := os.Stat(path)
	testkit.Must(t, err)
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 5678 {
		t.Errorf("owner %d:%d, want 1234:5678", s.Uid, s.Gid)
	}
	got := make([]byte, 100)
	if n, err := unix.Lgetxattr(path, "security.selinux", got); labelled && (err != nil || !bytes.Equal(got[:n], label)) {
		t.Errorf("label %q, %v; want %q", got, err, label)
	}
}

func TestInstall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	for _, data := range []string{"one", "two"} {
		testkit.Must(t, Install(path, strings.NewReader(data), 0o755))
		expect(t, path, data, 0o755)
		write(t, path, data, 0o600) // the next write sets the mode again
	}
	err := Install(filepath.Dir(path), strings.NewReader("x"), 0o755)
	testkit.Is(testkit.In(t, "onto a directory"), err, syscall.EISDIR)
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "a", 0o644)
	for _, want := range []bool{true, false} {
		if changed, err := Remove(path); err != nil || changed != want {
			t.Errorf("changed %v, error %v; want %v and none", changed, err, want)
		}
	}
}

// mount mounts a small file system for a test.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, options))
	t.Cleanup(func() {
		testkit.Check(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
	return dir
}

func TestOldFileStaysWhenItCannotBeReplaced(t *testing.T) {
	testkit.Privileged(t)
	big := bytes.Repeat([]byte("x"), 1<<20)
	for _, tt := range []struct {
		name string
		spoil,
		heal func(dir string) error
		want error
	}{
		{"full disk", func(string) error { return nil }, func(string) error { return nil }, syscall.ENOSPC},
		{"read-only",
			func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") },
			func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT, "") },
			syscall.EROFS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := mount(t, "size=64k")
			path := filepath.Join(dir, "file")
			write(t, path, "old", 0o644)
			testkit.Must(t, tt.spoil(dir))
			if changed, err := Write(path, big, 0o644); changed || !errors.Is(err, tt.want) {
				t.Errorf("changed %v, error %v; want %v", changed, err, tt.want)
			}
			if changed, err := Write(path, []byte("old"), 0o644); changed || err != nil {
				t.Errorf("the same bytes: changed %v, error %v", changed, err)
			}
			expect(t, path, "old", 0o644)
			testkit.Equal(t, []string{"file"}, names(t, dir))
			testkit.Must(t, tt.heal(dir))
			if changed, err := Write(path, []byte("new"), 0o644); !changed || err != nil {
				t.Errorf("afterwards: changed %v, error %v", changed, err)
			}
			expect(t, path, "new", 0o644)
		})
	}
}

func TestConcurrentWritersNeverMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				line := fmt.Sprintf("%d.%d ", i, j)
				_, err := Write(path, []byte(strings.Repeat(line, 500)), 0o644)
				testkit.Check(t, err)
				got, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
					continue
				}
				words := strings.Fields(string(got))
				if len(words) != 500 || len(slices.Compact(words)) != 1 {
					t.Errorf("a mixture of %d words", len(words))
				}
			}
		})
	}
	group.Wait()
}
