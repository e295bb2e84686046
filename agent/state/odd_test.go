package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hold puts a file in the place of one that a job published, locked as by its
// writer.
func hold(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// inJob is the folder of a job.
func inJob(t testing.TB, dir string) string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, value{}.JobName()), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, value{}.JobName(), fileName)
}

// A job that was taken over can put anything in its place: it makes others neither
// wait nor read what is not its own.
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
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if name != "link" && name != "directory" {
				hold(t, path)
			}
			if v, err := Read[value](open(t, dir)); v != nil {
				t.Errorf("it says %+v, error %v", v, err)
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
	if err := os.Mkdir(job, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(job, fileName)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	hold(t, path)
	if v, err := Read[T](open(t, dir)); (v != nil) != (err == nil) {
		t.Errorf("%+v, error %v", v, err)
	}
}
