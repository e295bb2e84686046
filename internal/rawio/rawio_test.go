package rawio

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestClock(t *testing.T) {
	var want unix.Timespec
	testkit.Must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &want))
	if got := Clock(unix.CLOCK_MONOTONIC); got < time.Duration(want.Nano()) {
		t.Errorf("%v, and %v before", got, time.Duration(want.Nano()))
	}
	testkit.Equal(t, 0, Clock(99))
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"some words", "other"} {
		f, err := Open(path, unix.O_WRONLY|unix.O_CREAT, 0o600)
		testkit.Must(t, err)
		if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("written %d, error %v", n, err)
		}
		testkit.Check(t, f.Close())
		testkit.Is(testkit.In(t, "closed again"), f.Close(), unix.EBADF)
	}
	f, err := Open(path, unix.O_RDONLY, 0)
	testkit.Must(t, err)
	defer f.Close()
	var p [32]byte
	if n, err := f.Read(p[:]); string(p[:n]) != "otherwords" || err != nil {
		t.Errorf("read %q, error %v", p[:n], err)
	}
	_, err = f.Write(p[:])
	testkit.Is(testkit.In(t, "written to a file opened for reading"), err, unix.EBADF)
	link := filepath.Join(dir, "link")
	testkit.Must(t, os.Symlink("file", link))
	for path, want := range map[string]error{link: unix.ELOOP, filepath.Join(dir, "none"): os.ErrNotExist, "a\x00b": unix.EINVAL} {
		_, err := Open(path, unix.O_RDONLY, 0)
		testkit.Is(testkit.In(t, path), err, want)
	}
}

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	testkit.Must(t, err)
	b, err = l.Accept()
	testkit.Must(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return Conn(a), b
}

func TestConn(t *testing.T) {
	a, b := pair(t)
	// More than the kernel buffers: the writer has to wait.
	data := bytes.Repeat([]byte("vipgen"), 2<<20)
	go func() {
		got, _ := io.ReadAll(io.LimitReader(b, int64(len(data))))
		b.Write(got)
		b.Close()
	}()
	if n, err := a.Write(data); n != len(data) || err != nil {
		t.Fatalf("written %d, error %v", n, err)
	}
	if got, err := io.ReadAll(a); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d, error %v", len(got), err)
	}
	if n, err := a.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing to read into: %d, error %v", n, err)
	}
}

func TestConnFails(t *testing.T) {
	a, b := pair(t)
	a.SetDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := a.Read(make([]byte, 1))
	testkit.Is(testkit.In(t, "nothing came"), err, os.ErrDeadlineExceeded)
	a.SetDeadline(time.Time{})
	b.(*net.TCPConn).SetLinger(0)
	b.Close()
	_, err = a.Read(make([]byte, 1))
	testkit.Is(testkit.In(t, "the other side reset it"), err, unix.ECONNRESET)
	_, err = a.Write([]byte("word"))
	testkit.Is(testkit.In(t, "written after that"), err, unix.EPIPE)
	a.Close()
	_, err = a.Read(make([]byte, 1))
	testkit.Is(testkit.In(t, "read after it was closed"), err, net.ErrClosed)
}

// A connection without a file descriptor is returned unchanged.
func TestConnOfMemory(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	if Conn(a) != a {
		t.Error("a pipe was changed")
	}
}

func TestTimer(t *testing.T) {
	timer, err := NewTimer()
	testkit.Must(t, err)
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 5 * time.Millisecond} {
		began := time.Now()
		timer.Set(time.Hour)
		timer.Set(d)
		testkit.Must(t, timer.Wait())
		if after := time.Since(began); after < d {
			t.Errorf("set to %v, it ended after %v", d, after)
		}
	}
}
