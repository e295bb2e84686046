package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// file is the record on disk. It is open only during writes: an open file would keep people
// from remounting its file system.
type file struct {
	dir string
	seq uint64
	// dirty is set where something is not synced yet.
	dirty bool
	// standing is the current state, by subject: a new file begins with it, so that it is
	// understood without the older ones.
	standing map[string]Event
}

// maxStanding is many times what a node has.
const maxStanding = 256

func (f *file) path() string { return filepath.Join(f.dir, FileName) }

// begin determines the end of the record.
func (f *file) begin() {
	f.standing = map[string]Event{}
	for _, name := range []string{OlderName, FileName} {
		f.seq = max(f.seq, lastSeq(filepath.Join(f.dir, name)))
	}
}

// open opens the file to append lines. It refuses anything but a regular file, such as a link.
// torn is set where the file ends within a line.
func (f *file) open() (to *os.File, size int64, torn bool, err error) {
	to, err = os.OpenFile(f.path(), os.O_APPEND|os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, 0, false, err
	}
	info, err := to.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		to.Close()
		return nil, 0, false, err
	}
	size = info.Size()
	if size > 0 {
		last := make([]byte, 1)
		_, err := to.ReadAt(last, size-1)
		torn = err != nil || last[0] != '\n'
	}
	return to, size, torn, nil
}

// write appends events and returns their number. An empty list tests whether it can.
func (f *file) write(list []Event) (n int, err error) {
	to, size, torn, err := f.open()
	if err != nil {
		return 0, err
	}
	defer func() { to.Close() }()
	for _, e := range list {
		line := f.line(e)
		if torn {
			line = append([]byte{'\n'}, line...)
		}
		if size+int64(len(line)) > maxFile {
			to.Close()
			if to, size, err = f.rotate(); err != nil {
				return n, err
			}
			line = f.line(e)
		}
		// In one call, so that only a power failure leaves a part of a line.
		if _, err := to.Write(line); err != nil {
			return n, err
		}
		size, torn = size+int64(len(line)), false
		f.recordWritten(e)
		n++
	}
	return n, nil
}

// line returns an event as the next line.
func (f *file) line(e Event) []byte {
	e.Seq = f.seq + 1
	line, err := json.Marshal(e)
	if err != nil || len(line) >= maxLine {
		return nil // bound prevents it
	}
	return append(line, '\n')
}

func (f *file) recordWritten(e Event) {
	f.seq++
	f.dirty = true
	key := e.subject()
	if _, known := f.standing[key]; e.isState() && (known || len(f.standing) < maxStanding) {
		f.standing[key] = e
	}
}

// rotate begins a new file, with the current state.
func (f *file) rotate() (to *os.File, size int64, err error) {
	f.sync()
	if err := os.Rename(f.path(), filepath.Join(f.dir, OlderName)); err != nil {
		return nil, 0, err
	}
	if to, _, _, err = f.open(); err != nil {
		return nil, 0, err
	}
	stands := slices.Collect(maps.Values(f.standing))
	sortByTime(stands)
	for _, e := range stands {
		e.Again, e.LeftOut, e.Missed = true, 0, 0
		line := f.line(e)
		if size+int64(len(line)) > maxFile/2 {
			break
		}
		if _, err := to.Write(line); err != nil {
			to.Close()
			return nil, 0, err
		}
		f.seq++
		size += int64(len(line))
	}
	return to, size, nil
}

// sync makes the written lines durable.
func (f *file) sync() {
	if !f.dirty {
		return
	}
	f.dirty = false
	if from, err := os.OpenFile(f.path(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err == nil {
		from.Sync()
		from.Close()
	}
}

// lastSeq returns the highest number at the end of a file; 0 for none.
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
	const tail = 4 * maxLine
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
