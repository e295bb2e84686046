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

// file is the record on disk. It is open only while it is written: an open file would keep
// people from remounting its file system.
type file struct {
	dir string
	seq uint64
	// dirty says that something is not synced yet.
	dirty bool
	// standing is how things stand, by subject: another file begins with that, so that the
	// record is understood without those that are gone.
	standing map[string]Event
}

// maxStanding is many times what a node has.
const maxStanding = 256

func (f *file) path() string { return filepath.Join(f.dir, FileName) }

// begin finds out where the record ends.
func (f *file) begin() {
	f.standing = map[string]Event{}
	for _, name := range []string{OlderName, FileName} {
		f.seq = max(f.seq, lastSeq(filepath.Join(f.dir, name)))
	}
}

// open opens the file to add lines. What is not a file of its own there, such as a link, is
// none of this. torn says that the file ends within a line.
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

// write adds events, and says how many it has added. An empty list shows whether it could.
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
			if to, size, err = f.turn(); err != nil {
				return n, err
			}
			line = f.line(e)
		}
		// In one call, so that only a node that loses its power leaves a part of a line.
		if _, err := to.Write(line); err != nil {
			return n, err
		}
		size, torn = size+int64(len(line)), false
		f.wrote(e)
		n++
	}
	return n, nil
}

// line is an event as the next line.
func (f *file) line(e Event) []byte {
	e.Seq = f.seq + 1
	line, err := json.Marshal(e)
	if err != nil || len(line) >= maxLine {
		return nil // bound has seen to it that there is none
	}
	return append(line, '\n')
}

func (f *file) wrote(e Event) {
	f.seq++
	f.dirty = true
	key := e.subject()
	if _, known := f.standing[key]; e.standing() && (known || len(f.standing) < maxStanding) {
		f.standing[key] = e
	}
}

// turn begins another file, with how things stand.
func (f *file) turn() (to *os.File, size int64, err error) {
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

// sync makes what was written last.
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
