package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Watch sends when to read the state of a job: at once, and whenever it was published or
// its writer ended. The channel has capacity 1, may send without a change, and is closed
// after ctx ends.
func (d *Dir) Watch(ctx context.Context, j Job) (<-chan struct{}, error) {
	name := j.JobName()
	// Not fsnotify, which drops close events: these show the end of a writer.
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", d.path, err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	// The writer's directory may be created with the writer.
	if _, err := unix.InotifyAddWatch(fd, d.path, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err != nil {
		events.Close()
		return nil, fmt.Errorf("watching %s: %w", d.path, err)
	}
	enter := func() {
		unix.InotifyAddWatch(fd, filepath.Join(d.path, name), unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_CLOSE_WRITE)
	}
	enter()
	seen := make(chan struct{}, 1)
	go func() {
		defer close(seen)
		readEvents(events, name, enter, seen)
	}()
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		follow(ctx, seen, changed)
		events.Close()
		for range seen { // until the reader has ended
		}
	}()
	return changed, nil
}

// pollDelays are the delays of further reads after an event: the kernel reports that a
// file is closed a moment before it releases the lock.
var pollDelays = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// follow forwards events until ctx ends or there are no more.
func follow(ctx context.Context, seen <-chan struct{}, changed chan<- struct{}) {
	notify(changed)
	timer := time.NewTimer(pollDelays[0])
	defer timer.Stop()
	next := 0
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-seen:
			if !open {
				return
			}
			next = 0
		case <-timer.C:
			next++
		}
		notify(changed)
		if next < len(pollDelays) {
			timer.Reset(pollDelays[next])
		}
	}
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// readEvents sends after changes of the state of a job until the events are closed. It
// enters the writer's directory when that is created.
func readEvents(events *os.File, name string, enter func(), seen chan<- struct{}) {
	buf := make([]byte, 16<<10)
	for {
		n, err := events.Read(buf)
		if err != nil {
			return
		}
		came := mentions(buf[:n], name)
		if came {
			enter()
		}
		if came || mentions(buf[:n], fileName) {
			notify(seen)
		}
	}
}

// mentions reports whether inotify events contain a name or an overflow: struct
// inotify_event has a header of 16 bytes with the mask at 4 and the length of the name at
// 12, then the name, padded with zeros (inotify(7)).
func mentions(events []byte, name string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if end > len(events) {
			return true
		}
		got := bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00")
		if string(got) == name || mask&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		events = events[end:]
	}
	return false
}
