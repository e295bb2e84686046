package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LogLimit bounds what a daemon may log: Burst bytes at once, Rate bytes a second from
// then on. Lines beyond that are left out as a whole, and counted. The zero value
// bounds nothing.
type LogLimit struct{ Rate, Burst int }

// pipeSize is room for what a daemon writes while the agent is not scheduled, in
// bytes; unprivileged processes get no more.
const pipeSize = 1 << 20

// maxLine is how much of a line counts as one.
const maxLine = 4096

// logPipe makes the file that a daemon writes its log to. What it writes there goes
// on, line by line, within the limit, until close is called and all was read. A daemon
// never waits for its log: what finds no room is lost. wanted is asked about each line.
func logPipe(l LogLimit, wanted func([]byte) bool, to io.Writer) (w *os.File, closed func(), err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, fmt.Errorf("pipe for the log: %w", err)
	}
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // or as much as there is
	r, w := os.NewFile(uintptr(fds[0]), "log"), os.NewFile(uintptr(fds[1]), "log")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		l.copy(to, &endless{r, pipeSize}, wanted, time.Now)
	}()
	return w, func() {
		r.SetReadDeadline(time.Now().Add(lastWords))
		<-done
	}, nil
}

// lastWords is how long what left a daemon's group may log on after the daemon's end: it
// may hold the other end of the pipe for ever.
var lastWords = time.Second

// endless is the end of a pipe that others may hold open. When its deadline has passed, it
// gives what is in the pipe without waiting, up to some bytes: what was written before is
// not lost, however late this process is.
type endless struct {
	*os.File
	room int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n, err = e.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || e.room <= 0 {
		return n, err
	}
	raw, late := e.SyscallConn()
	if late == nil {
		late = raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), p) })
	}
	if late != nil || err != nil || n <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	e.room -= n
	return n, nil
}

// copy passes wanted lines on, each in a Write, until there are no more.
func (l LogLimit) copy(to io.Writer, from io.Reader, wanted func([]byte) bool, now func() time.Time) {
	lines := bufio.NewReaderSize(from, maxLine)
	room, last, left := float64(l.Burst), now(), 0
	for {
		line, err := lines.ReadSlice('\n')
		t := now()
		drop := len(line) == 0 || wanted != nil && !wanted(line)
		room = min(room+t.Sub(last).Seconds()*float64(l.Rate), float64(l.Burst))
		last = t
		switch {
		case drop:
		case float64(len(line)) > room:
			left++
		default:
			if left > 0 {
				fmt.Fprintf(to, "... %d lines left out\n", left)
				left = 0
			}
			to.Write(line)
			room -= float64(len(line))
		}
		if err != nil && err != bufio.ErrBufferFull {
			if left > 0 {
				fmt.Fprintf(to, "... %d lines left out\n", left)
			}
			return
		}
	}
}
