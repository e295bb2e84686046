package trackfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

var terms = []vrrp.Term{{Name: "lb-path", Points: 20}, {Name: "ingress-away", Initial: 1}}

func open(t testing.TB, dir string) *Files {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ensure(terms); err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, filepath.Join(dir, name)))
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "track")
	f := open(t, dir)
	for _, step := range []struct {
		name    string
		on      bool
		changed bool
		want    []Value
	}{
		{"lb-path", false, false, []Value{{"ingress-away", 1}, {"lb-path", 0}}},
		{"lb-path", true, true, []Value{{"ingress-away", 1}, {"lb-path", 1}}},
		{"lb-path", true, false, []Value{{"ingress-away", 1}, {"lb-path", 1}}},
		{"ingress-away", false, true, []Value{{"ingress-away", 0}, {"lb-path", 1}}},
		{"lb-path", false, true, []Value{{"ingress-away", 0}, {"lb-path", 0}}},
	} {
		if changed, err := f.Set(step.name, step.on); changed != step.changed || err != nil {
			t.Errorf("%+v: changed %v, error %v", step, changed, err)
		}
		if got := f.Values(); !slices.Equal(got, step.want) {
			t.Errorf("%+v: values %v", step, got)
		}
		for _, v := range step.want {
			if got := read(t, dir, v.Name); got != string(rune('0'+v.Value))+"\n" {
				t.Errorf("%+v: %s has %q", step, v.Name, got)
			}
		}
	}
	if _, err := f.Set("dns", true); err == nil {
		t.Error("a term that nobody announced was written")
	}
}

func TestEnsureKeepsValues(t *testing.T) {
	f := open(t, t.TempDir())
	f.Set("lb-path", true)
	if err := f.Ensure(append(terms, vrrp.Term{Name: "machine-config"})); err != nil {
		t.Fatal(err)
	}
	want := []Value{{"ingress-away", 1}, {"lb-path", 1}, {"machine-config", 0}}
	if got := f.Values(); !slices.Equal(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
}

func TestOpenForgetsAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	f.Set("lb-path", true)
	f.Ensure([]vrrp.Term{{Name: "old"}})
	open(t, dir)
	if got := read(t, dir, "lb-path"); got != "0\n" {
		t.Errorf("the value of an earlier run stands: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of an earlier run stands: %v", err)
	}
}

// tmpfs mounts a small disk on a directory.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// A disk without room for one more file takes every change of those that are
// there.
func TestFullDisk(t *testing.T) {
	testkit.Privileged(t)
	dir := tmpfs(t)
	f := open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "rubbish"), make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for _, on := range []bool{true, false, true} {
		if changed, err := f.Set("lb-path", on); !changed || err != nil {
			t.Errorf("%v: changed %v, error %v", on, changed, err)
		}
	}
	if got := read(t, dir, "lb-path"); got != "1\n" {
		t.Errorf("the file has %q", got)
	}
	if err := f.Ensure([]vrrp.Term{{Name: "more"}}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("one more file: %v", err)
	}
}

// A removed file is created again.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	if err := os.Remove(filepath.Join(dir, "lb-path")); err != nil {
		t.Fatal(err)
	}
	if changed, err := f.Set("lb-path", true); !changed || err != nil || read(t, dir, "lb-path") != "1\n" {
		t.Errorf("changed %v, error %v", changed, err)
	}
}

func TestReadOnly(t *testing.T) {
	testkit.Privileged(t)
	dir := tmpfs(t)
	f := open(t, dir)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if changed, err := f.Set("lb-path", true); changed || !errors.Is(err, unix.EROFS) {
			t.Error(changed, err)
		}
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if changed, err := f.Set("lb-path", true); !changed || err != nil || read(t, dir, "lb-path") != "1\n" {
		t.Errorf("after it was mended: changed %v, error %v", changed, err)
	}
}

// Who starts to watch after a change learns of it all the same.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	f.Set("lb-path", true)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, name := range []string{"lb-path", "ingress-away"} {
		if _, err := unix.InotifyAddWatch(fd, filepath.Join(dir, name), unix.IN_CLOSE_WRITE); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Repeat(); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 16*unix.SizeofInotifyEvent)
	if n, err := unix.Read(fd, events); n != 2*unix.SizeofInotifyEvent || err != nil {
		t.Errorf("%d bytes of events, error %v", n, err)
	}
	if got := read(t, dir, "lb-path") + read(t, dir, "ingress-away"); got != "1\n1\n" {
		t.Errorf("the files have %q", got)
	}
}

// What is withdrawn stays so, whatever the checks say after it.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	for _, name := range []string{"lb-path", "ingress-away"} {
		if _, err := f.Set(name, name == "lb-path"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Withdraw(terms); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lb-path", "ingress-away"} {
		if changed, err := f.Set(name, true); changed || err != nil {
			t.Errorf("%s: changed %v, error %v", name, changed, err)
		}
		if got := read(t, dir, name); got != "0\n" {
			t.Errorf("%s has %q", name, got)
		}
	}
}
