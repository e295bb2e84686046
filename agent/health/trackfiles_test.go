package health

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

var trackTerms = []vrrp.Term{{Name: "lb-path", Points: 20}, {Name: "ingress-away", Initial: 1}}

func openTerms(t testing.TB, dir string) *TrackFiles {
	t.Helper()
	f, err := OpenTrackFiles(dir)
	testkit.Must(t, err)
	testkit.Must(t, f.Ensure(trackTerms))
	return f
}

func readTrack(t *testing.T, dir, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, filepath.Join(dir, name)))
}

func TestTrackFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "track")
	f := openTerms(t, dir)
	for _, step := range []struct {
		name    string
		on      bool
		changed bool
		want    []TrackValue
	}{
		{"lb-path", false, false, []TrackValue{{"ingress-away", 1}, {"lb-path", 0}}},
		{"lb-path", true, true, []TrackValue{{"ingress-away", 1}, {"lb-path", 1}}},
		{"lb-path", true, false, []TrackValue{{"ingress-away", 1}, {"lb-path", 1}}},
		{"ingress-away", false, true, []TrackValue{{"ingress-away", 0}, {"lb-path", 1}}},
		{"lb-path", false, true, []TrackValue{{"ingress-away", 0}, {"lb-path", 0}}},
	} {
		if changed, err := f.Set(step.name, step.on); changed != step.changed || err != nil {
			t.Errorf("%+v: changed %v, error %v", step, changed, err)
		}
		testkit.Equal(t, step.want, f.Values())
		for _, v := range step.want {
			testkit.Equal(testkit.In(t, step, v.Name), string(rune('0'+v.Value))+"\n", readTrack(t, dir, v.Name))
		}
	}
	if _, err := f.Set("dns", true); err == nil {
		t.Error("an unannounced term was written")
	}
}

func TestEnsureKeepsValues(t *testing.T) {
	f := openTerms(t, t.TempDir())
	f.Set("lb-path", true)
	testkit.Must(t, f.Ensure(append(trackTerms, vrrp.Term{Name: "machine-config"})))
	want := []TrackValue{{"ingress-away", 1}, {"lb-path", 1}, {"machine-config", 0}}
	testkit.Equal(t, want, f.Values())
}

func TestOpenForgetsAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	f := openTerms(t, dir)
	f.Set("lb-path", true)
	f.Ensure([]vrrp.Term{{Name: "old"}})
	openTerms(t, dir)
	testkit.Equal(t, "0\n", readTrack(t, dir, "lb-path"))
	if _, err := os.Stat(filepath.Join(dir, "old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of an earlier run stands: %v", err)
	}
}

// A disk without space for another file accepts every change of existing ones.
func TestFullDisk(t *testing.T) {
	dir := testkit.SmallDisk(t)
	f := openTerms(t, dir)
	testkit.FillDisk(t, dir)
	for _, on := range []bool{true, false, true} {
		if changed, err := f.Set("lb-path", on); !changed || err != nil {
			t.Errorf("%v: changed %v, error %v", on, changed, err)
		}
	}
	testkit.Equal(t, "1\n", readTrack(t, dir, "lb-path"))
	if err := f.Ensure([]vrrp.Term{{Name: "more"}}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("one more file: %v", err)
	}
}

// A removed file is created again.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	f := openTerms(t, dir)
	testkit.Must(t, os.Remove(filepath.Join(dir, "lb-path")))
	if changed, err := f.Set("lb-path", true); !changed || err != nil || readTrack(t, dir, "lb-path") != "1\n" {
		t.Errorf("changed %v, error %v", changed, err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := testkit.SmallDisk(t)
	f := openTerms(t, dir)
	unlock := testkit.LockDisk(t, dir)
	for range 2 {
		if changed, err := f.Set("lb-path", true); changed || !errors.Is(err, unix.EROFS) {
			t.Error(changed, err)
		}
	}
	unlock()
	if changed, err := f.Set("lb-path", true); !changed || err != nil || readTrack(t, dir, "lb-path") != "1\n" {
		t.Errorf("after it was mended: changed %v, error %v", changed, err)
	}
}

// A watcher that starts after a change is notified anyway.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	f := openTerms(t, dir)
	f.Set("lb-path", true)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	testkit.Must(t, err)
	defer unix.Close(fd)
	for _, name := range []string{"lb-path", "ingress-away"} {
		if _, err := unix.InotifyAddWatch(fd, filepath.Join(dir, name), unix.IN_CLOSE_WRITE); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, f.Repeat())
	events := make([]byte, 16*unix.SizeofInotifyEvent)
	if n, err := unix.Read(fd, events); n != 2*unix.SizeofInotifyEvent || err != nil {
		t.Errorf("%d bytes of events, error %v", n, err)
	}
	testkit.Equal(t, "1\n1\n", readTrack(t, dir, "lb-path")+readTrack(t, dir, "ingress-away"))
}

// A withdrawn file stays withdrawn, whatever checks report afterwards.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	f := openTerms(t, dir)
	for _, name := range []string{"lb-path", "ingress-away"} {
		if _, err := f.Set(name, name == "lb-path"); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, f.Withdraw(trackTerms))
	for _, name := range []string{"lb-path", "ingress-away"} {
		if changed, err := f.Set(name, true); changed || err != nil {
			t.Errorf("%s: changed %v, error %v", name, changed, err)
		}
		testkit.Equal(testkit.In(t, name), "0\n", readTrack(t, dir, name))
	}
}
