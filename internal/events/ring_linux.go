package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ring writes a node's record. It is a help for people and never in the way: Note does not
// wait for the disk, and what cannot be written, as on a full or read-only one, is counted
// and forgotten. The zero value, and nil, record nothing.
type Ring struct {
	dir, node, boot string
	log             *slog.Logger

	queue chan Event
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	missed uint64 // events that the queue had no room for

	// Of the goroutine that writes.
	file    *os.File
	size    int64
	torn    bool // the file ends within a line
	seq     uint64
	limit   limiter
	left    uint64 // events that could not be written
	retry   time.Time
	failing bool
	dirty   bool // something is not synced yet
}

const (
	// queueSize is many times what happens to a node at once.
	queueSize = 256
	// retryEvery is how often it is tried to write where that fails, syncEvery how often
	// lines are made to last, at most: etcd shares the disk.
	retryEvery = time.Second
	syncEvery  = time.Second
	// closeTime bounds how long Close waits for the disk.
	closeTime = time.Second
)

// Open goes on with the record in a directory, of the node of that name. It never fails.
// The caller must Close it.
func Open(dir, node string, log *slog.Logger) *Ring {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	r := &Ring{
		dir: dir, node: node, boot: string(bytes.TrimSpace(boot)), log: log,
		queue: make(chan Event, queueSize), done: make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		r.run()
	}()
	return r
}

// Note records an event, with the time of now. It does not wait.
func (r *Ring) Note(e Event) {
	if r == nil || r.queue == nil {
		return
	}
	e.Time, e.Up = time.Now().UTC().Round(time.Microsecond), MillisOf(sinceBoot())
	e.bound()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	e.LeftOut = r.missed
	select {
	case r.queue <- e:
		r.missed = 0
	default:
		r.missed++
	}
}

// Close writes what was noted, and returns when that is done, or after a second.
func (r *Ring) Close() {
	if r == nil || r.queue == nil {
		return
	}
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(closeTime):
	}
}

// sinceBoot is the time since the kernel booted, with the time that it was suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// run writes until the queue is closed and empty.
func (r *Ring) run() {
	r.open()
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		select {
		case e, more := <-r.queue:
			if !more {
				for _, late := range r.limit.flush() {
					r.write(late)
				}
				r.shut()
				return
			}
			if allowed, ok := r.limit.take(e, time.Now()); ok {
				r.write(allowed)
			}
		case <-tick.C:
			for _, late := range r.limit.due(time.Now()) {
				r.write(late)
			}
			if r.dirty && r.file != nil {
				r.file.Sync()
				r.dirty = false
			}
		}
		switch {
		case r.dirty:
			tick.Reset(syncEvery)
		case r.limit.waiting():
			tick.Reset(refill)
		}
	}
}

func (r *Ring) path() string { return filepath.Join(r.dir, FileName) }

// open finds out where the record ends.
func (r *Ring) open() {
	for _, name := range []string{OlderName, FileName} {
		r.seq = max(r.seq, lastSeq(filepath.Join(r.dir, name)))
	}
	r.note(r.reopen())
}

// reopen opens the file that lines are added to. What is not a file of its own there, such
// as a link, is none of this.
func (r *Ring) reopen() error {
	f, err := os.OpenFile(r.path(), os.O_APPEND|os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: r.path(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return err
	}
	r.file, r.size, r.torn = f, info.Size(), false
	if r.size > 0 {
		last := make([]byte, 1)
		_, err := f.ReadAt(last, r.size-1)
		r.torn = err != nil || last[0] != '\n'
	}
	return nil
}

// write adds a line, in one call, so that only a node that loses its power leaves a part
// of one.
func (r *Ring) write(e Event) {
	e.Seq, e.Boot, e.Node = r.seq+1, r.boot, cut(r.node)
	e.LeftOut += r.left
	line, err := json.Marshal(e)
	if err != nil || len(line) >= MaxLine {
		return // bound has seen to it that there is none
	}
	line = append(line, '\n')
	if err = r.ready(len(line)); err == nil {
		if r.torn {
			line = append([]byte{'\n'}, line...)
		}
		var n int
		n, err = r.file.Write(line)
		r.size += int64(n)
		if n > 0 {
			r.torn = n < len(line)
		}
	}
	r.note(err)
	if err != nil {
		r.left++
		if !errors.Is(err, errWaiting) {
			r.close()
			r.retry = time.Now().Add(retryEvery)
		}
		return
	}
	r.seq, r.left, r.dirty = e.Seq, 0, true
}

// ready makes room for a line of that length.
func (r *Ring) ready(length int) error {
	if r.file == nil {
		if time.Now().Before(r.retry) {
			return errWaiting
		}
		if err := r.reopen(); err != nil {
			return err
		}
	}
	if r.size+int64(length) <= MaxFile {
		return nil
	}
	r.file.Sync()
	if err := os.Rename(r.path(), filepath.Join(r.dir, OlderName)); err != nil {
		return err
	}
	r.close()
	return r.reopen()
}

var errWaiting = errors.New("not tried yet again")

func (r *Ring) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

func (r *Ring) shut() {
	if r.file != nil && r.dirty {
		r.file.Sync()
	}
	r.close()
}

// note logs when it begins that events are not recorded, and when it is over.
func (r *Ring) note(err error) {
	switch {
	case errors.Is(err, errWaiting):
	case err != nil && !r.failing:
		r.failing = true
		r.log.Warn("events are not recorded on disk for 'vipgen doctor'", "error", err.Error())
	case err == nil && r.failing:
		r.failing = false
		r.log.Info("events are recorded on disk again")
	}
}

// lastSeq is the highest number at the end of a file; 0 for none.
func lastSeq(path string) (seq uint64) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	const tail = 4 * MaxLine
	data, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-tail, 0), tail))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		var e Event
		if json.Unmarshal(line, &e) == nil {
			seq = max(seq, e.Seq)
		}
	}
	return seq
}
