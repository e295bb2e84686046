package health

import (
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

// sets writes a track file, and compares the result.
func sets(t testing.TB, f *TrackFiles, name string, on, changed bool, failed error) {
	t.Helper()
	got, err := f.Set(name, on)
	testkit.Equal(testkit.In(t, name, on, "changed"), changed, got)
	testkit.Is(testkit.In(t, name, on), err, failed)
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
		sets(t, f, step.name, step.on, step.changed, nil)
		testkit.Equal(t, step.want, f.Values())
		for _, v := range step.want {
			testkit.Equal(testkit.In(t, step, v.Name), string(rune('0'+v.Value))+"\n", readTrack(t, dir, v.Name))
		}
	}
	_, err := f.Set("dns", true)
	testkit.Fails(testkit.In(t, "an unannounced term"), err, "")
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
	_, err := os.Stat(filepath.Join(dir, "old"))
	testkit.Is(testkit.In(t, "the file of an earlier run"), err, os.ErrNotExist)
}

// A disk without space for another file accepts every change of existing ones.
func TestFullDisk(t *testing.T) {
	dir := testkit.SmallDisk(t)
	f := openTerms(t, dir)
	testkit.FillDisk(t, dir)
	for _, on := range []bool{true, false, true} {
		sets(t, f, "lb-path", on, true, nil)
	}
	testkit.Equal(t, "1\n", readTrack(t, dir, "lb-path"))
	testkit.Is(testkit.In(t, "one more file"), f.Ensure([]vrrp.Term{{Name: "more"}}), unix.ENOSPC)
}

// A removed file is created again.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	f := openTerms(t, dir)
	testkit.Must(t, os.Remove(filepath.Join(dir, "lb-path")))
	sets(t, f, "lb-path", true, true, nil)
	testkit.Equal(t, "1\n", readTrack(t, dir, "lb-path"))
}

func TestReadOnly(t *testing.T) {
	dir := testkit.SmallDisk(t)
	f := openTerms(t, dir)
	unlock := testkit.LockDisk(t, dir)
	for range 2 {
		sets(t, f, "lb-path", true, false, unix.EROFS)
	}
	unlock()
	sets(t, f, "lb-path", true, true, nil)
	testkit.Equal(t, "1\n", readTrack(t, dir, "lb-path"))
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
		_, err := unix.InotifyAddWatch(fd, filepath.Join(dir, name), unix.IN_CLOSE_WRITE)
		testkit.Must(t, err)
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
		_, err := f.Set(name, name == "lb-path")
		testkit.Must(t, err)
	}
	testkit.Must(t, f.Withdraw(trackTerms))
	for _, name := range []string{"lb-path", "ingress-away"} {
		sets(t, f, name, true, false, nil)
		testkit.Equal(testkit.In(t, name), "0\n", readTrack(t, dir, name))
	}
}
