//go:build linux

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

// Watch says when to read the state of a job again: at once, and whenever it was
// published or its writer ended. The channel holds one word at most, says some too many, and
// is closed when ctx has ended.
func (d *Dir) Watch(ctx context.Context, j Job) (<-chan struct{}, error) {
	name := j.JobName()
	// Not with fsnotify, which leaves out that a file was closed: that is how a
	// writer's end shows.
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", d.path, err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	// The writer's directory may come with the writer.
	if _, err := unix.InotifyAddWatch(fd, d.path, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err != nil {
		events.Close()
		return nil, fmt.Errorf("watch %s: %w", d.path, err)
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
		for range seen { // until the reader has noticed
		}
	}()
	return changed, nil
}

// again is when to look again after an event. The kernel reports that a file is
// closed a moment before it takes the lock away.
var again = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// follow passes events on, until ctx ends or there are no more.
func follow(ctx context.Context, seen <-chan struct{}, changed chan<- struct{}) {
	say(changed)
	timer := time.NewTimer(again[0])
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
		say(changed)
		if next < len(again) {
			timer.Reset(again[next])
		}
	}
}

func say(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// readEvents says when something happened to what the writer of that name says,
// until the events are closed. It enters the writer's directory when that comes.
func readEvents(events *os.File, name string, enter func(), seen chan<- struct{}) {
	buf := make([]byte, 16<<10)
	for {
		n, err := events.Read(buf)
		if err != nil {
			return
		}
		came := concerns(buf[:n], name)
		if came {
			enter()
		}
		if came || concerns(buf[:n], fileName) {
			say(seen)
		}
	}
}

// concerns looks through struct inotify_event: a header of 16 bytes, the mask
// at 4 and the length of the name at 12, and the name, padded with zeros
// (inotify(7)).
func concerns(events []byte, name string) bool {
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
