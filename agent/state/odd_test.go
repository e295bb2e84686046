package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
