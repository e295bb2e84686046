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

// LogLimit bounds the log of a daemon: Burst bytes at once, then Rate bytes a second.
// Lines beyond that are dropped as a whole, and counted. The zero value means no limit.
type LogLimit struct{ Rate, Burst int }

// pipeSize is the capacity for output while the agent is not scheduled, in bytes: the
// maximum for unprivileged processes.
const pipeSize = 1 << 20

// maxLine is the length at which lines are split.
const maxLine = 4096

// logPipe returns the file for a daemon's log. Its lines are forwarded within the limit
// until close is called and everything was read. A daemon never waits for its log: output
// that does not fit is lost. wanted decides about each line.
func logPipe(l LogLimit, wanted func([]byte) bool, to io.Writer) (w *os.File, closed func(), err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, fmt.Errorf("pipe for the log: %w", err)
	}
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // best effort
	r, w := os.NewFile(uintptr(fds[0]), "log"), os.NewFile(uintptr(fds[1]), "log")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		l.copy(to, &pipeReader{r, pipeSize}, wanted, time.Now)
	}()
	return w, func() {
		r.SetReadDeadline(time.Now().Add(drainTime))
		<-done
	}, nil
}

// drainTime bounds how long processes that left a daemon's group may keep the pipe open
// after the daemon's end.
var drainTime = time.Second

// pipeReader reads from a pipe that others may hold open. After its deadline it returns
// data already in the pipe without waiting, up to a limit, so that earlier output is not
// lost however late this process is.
type pipeReader struct {
	*os.File
	room int
}

func (e *pipeReader) Read(p []byte) (n int, err error) {
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

// copy forwards wanted lines, each in a Write, until there are no more.
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
