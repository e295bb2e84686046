// Package rawio makes system calls that do not block without notifying Go's runtime. Notified
// of one, after a pause, it wakes up a thread that watches for blocking calls: a program that
// wakes up ten times a second to send a few bytes would spend as much on that as on its work.
//
// Do not use it for files on disks, which may block a call, and with it all goroutines of the
// program.
package rawio

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clock reads a clock of the kernel, such as unix.CLOCK_MONOTONIC; 0 if it has none.
func Clock(id int32) time.Duration {
	var t unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}

// File is an open file of a file system in memory. It must be closed.
type File struct {
	fd   uintptr
	path string
}

// Open opens a file of a file system in memory with these flags, and O_CLOEXEC. It does not
// follow a link, and does not wait for the other side of a FIFO.
func Open(path string, flags int, mode uint32) (*File, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	cwd, flags := unix.AT_FDCWD, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(name)), uintptr(flags), uintptr(mode), 0, 0)
	if errno != 0 {
		return nil, &os.PathError{Op: "open", Path: path, Err: errno}
	}
	return &File{fd, path}, nil
}

// Read is one read(2) at the current offset.
func (f *File) Read(p []byte) (int, error) { return f.done("read", call(unix.SYS_READ, f.fd, p)) }

// Write is one write(2) at the current offset.
func (f *File) Write(p []byte) (int, error) { return f.done("write", call(unix.SYS_WRITE, f.fd, p)) }

// Close closes the file.
func (f *File) Close() error {
	_, err := f.done("close", call(unix.SYS_CLOSE, f.fd, nil))
	return err
}

func (f *File) done(op string, r result) (int, error) {
	if r.errno != 0 {
		return 0, &os.PathError{Op: op, Path: f.path, Err: r.errno}
	}
	return r.n, nil
}

type result struct {
	n     int
	errno syscall.Errno
}

// call repeats a call that a signal interrupts.
func call(number, fd uintptr, p []byte) result {
	for {
		n, _, errno := unix.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if errno != unix.EINTR {
			return result{int(n), errno}
		}
	}
}

// Timer is a timerfd_create(2) of unix.CLOCK_MONOTONIC.
type Timer struct {
	fd   uintptr
	file *os.File // of fd, which stays open with it
	raw  syscall.RawConn
}

// NewTimer returns a timer that is not set.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	t := &Timer{fd: uintptr(fd), file: os.NewFile(uintptr(fd), "timerfd")}
	if t.raw, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, err
	}
	return t, nil
}

// Set sets the timer to expire after d.
func (t *Timer) Set(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))} // 0 would disarm it
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, t.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// Wait waits for the timer to expire.
func (t *Timer) Wait() error {
	var r result
	var ends [8]byte
	err := t.raw.Read(func(fd uintptr) bool {
		r = call(unix.SYS_READ, fd, ends[:])
		return r.errno != unix.EAGAIN
	})
	if err == nil && r.errno != 0 {
		err = os.NewSyscallError("read", r.errno)
	}
	return err
}

// Conn returns a connection that reads and writes by system calls; one without a descriptor is
// returned unchanged.
func Conn(c net.Conn) net.Conn {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return &conn{c, raw}
		}
	}
	return c
}

type conn struct {
	net.Conn
	raw syscall.RawConn
}

// Read waits for data as any net.Conn does.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var r result
	err := c.raw.Read(func(fd uintptr) bool {
		r = call(unix.SYS_READ, fd, p)
		return r.errno != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case r.errno != 0:
		return 0, c.failed("read", r.errno)
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var r result
		err = c.raw.Write(func(fd uintptr) bool {
			r = call(unix.SYS_WRITE, fd, p[n:])
			return r.errno != unix.EAGAIN
		})
		if err == nil && r.errno != 0 {
			err = c.failed("write", r.errno)
		}
		if err == nil {
			n += r.n
		}
	}
	return n, err
}

func (c *conn) failed(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}
