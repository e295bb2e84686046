package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestAnswers(t *testing.T) {
	d := open(t, t.TempDir())
	testkit.Must(t, d.Publish(value{}))
	now := time.Hour
	clock := func() time.Duration { return now }
	writer, reader := d.Answers(value{}), d.Answers(value{})
	writer.now, reader.now = clock, clock
	_, err := reader.Age()
	testkit.Is(testkit.In(t, "before the first answer"), err, os.ErrNotExist)
	for _, tt := range []struct {
		name  string
		after time.Duration
		write bool
		text  string // another program's
		want  time.Duration
		fails bool
	}{
		{name: "just now", write: true},
		{name: "a while ago", after: 150 * time.Millisecond, want: 150 * time.Millisecond},
		{name: "again", after: time.Second, write: true},
		{name: "still to come, as before a reboot", after: -time.Second, fails: true},
		{name: "after that", write: true},
		{name: "not a time", text: "yesterday, or some day before\n", fails: true},
		{name: "half of one", text: "0000000000", fails: true},
		{name: "too long", text: "000000000000000000001\n", fails: true},
		{name: "not a number", text: "0000000000000000000x\n", fails: true},
		{name: "nothing", text: "\n", fails: true},
	} {
		now += tt.after
		if tt.text != "" {
			testkit.Must(t, os.WriteFile(writer.path, []byte(tt.text), 0o600))
		}
		if tt.write {
			testkit.Check(testkit.In(t, tt.name), writer.Record())
		}
		if got, err := reader.Age(); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %v, error %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// Writers and readers share the kernel's clock, which always advances.
func TestAnswersClock(t *testing.T) {
	d := open(t, t.TempDir())
	testkit.Must(t, d.Publish(value{}))
	began := time.Now()
	testkit.Must(t, d.Answers(value{}).Record())
	for {
		ago, err := d.Answers(value{}).Age()
		if err != nil || ago > time.Since(began) {
			t.Fatalf("%v, error %v, %v after the test began", ago, err, time.Since(began))
		}
		if ago > 0 {
			return
		}
	}
}

// Answers do not wake up watchers of a job's state.
func TestAnswersDoNotNotify(t *testing.T) {
	d := open(t, t.TempDir())
	testkit.Must(t, errors.Join(d.Publish(value{}), d.Answers(value{}).Record()))
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	testkit.Must(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, filepath.Dir(d.file(value{}.JobName())), unix.IN_ALL_EVENTS)
	testkit.Must(t, err)
	testkit.Must(t, d.Answers(value{}).Record())
	_, err = unix.Read(fd, make([]byte, 4096))
	testkit.Is(t, err, unix.EAGAIN)
}

// Readers neither follow a link nor wait for a FIFO in place of the file.
func TestAnswersOddFile(t *testing.T) {
	d := open(t, t.TempDir())
	testkit.Must(t, d.Publish(value{}))
	a := d.Answers(value{})
	testkit.Must(t, errors.Join(a.Record(), os.Remove(a.path), os.Symlink("../state.json", a.path)))
	testkit.Fails(testkit.In(t, "a record through a link"), a.Record(), "")
	_, err := a.Age()
	testkit.Fails(testkit.In(t, "the age of a link"), err, "")
}

// hold replaces the file that a job published by another one, locked as by its writer.
func hold(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { f.Close() })
	testkit.Must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// inJob returns the folder of a job.
func inJob(t testing.TB, dir string) string {
	t.Helper()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, value{}.JobName()), 0o755))
	return filepath.Join(dir, value{}.JobName(), fileName)
}

// A compromised job can replace its file by anything: readers neither wait nor read what it
// does not own.
func TestOddFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"large":     func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", maxSize+1)), 0o600) },
		"no JSON":   func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"another":   func(path string) error { return os.WriteFile(path, []byte(`[{"count":7}]`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := inJob(t, dir)
			testkit.Must(t, put(path))
			if name != "link" && name != "directory" {
				hold(t, path)
			}
			if v, err := Read[value](open(t, dir)); v != nil {
				t.Errorf("published %+v, error %v", v, err)
			}
		})
	}
}

// FuzzRead reads any file of another job, of any type.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"inPlace":true,"restored":1}`, `null`, `{"inPlace":[]}`, `{"instances":[{"vip":"x"}],"hosts":[{}]}`, "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readAs[Keepalived](t, data)
		readAs[HAProxy](t, data)
		readAs[Firewall](t, data)
		readAs[CoreDNS](t, data)
		readAs[MDNS](t, data)
	})
}

func readAs[T Job](t *testing.T, data []byte) {
	dir := t.TempDir()
	job := filepath.Join(dir, (*new(T)).JobName())
	testkit.Must(t, os.Mkdir(job, 0o755))
	path := filepath.Join(job, fileName)
	testkit.Must(t, os.WriteFile(path, data, 0o600))
	hold(t, path)
	if v, err := Read[T](open(t, dir)); (v != nil) != (err == nil) {
		t.Errorf("%+v, error %v", v, err)
	}
}
