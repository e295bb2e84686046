package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// reserve is the least room that a file has for what is published next, in bytes. Together
// with the data it makes whole pages, which /run gives in any case.
const reserve = 4096

// padded ends data with spaces, so that more can take its place on a full disk.
func padded(data []byte) []byte {
	size := (len(data) + 2*reserve - 1) / reserve * reserve
	return append(bytes.Clone(data), bytes.Repeat([]byte(" "), size-len(data))...)
}

// errRoom is the error of data that is longer than what was published before.
var errRoom = errors.New("no room in the file")

// overwrite writes data in the place of what the file, which this process has locked, says.
// It takes no new block of the disk. That the file is closed wakes up those who watch it.
func (d *Dir) overwrite(name string, locked *os.File, data []byte) error {
	if !owns(locked, d.file(name)) {
		return os.ErrNotExist
	}
	f, err := os.OpenFile(d.file(name), os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < int64(len(data)) {
		err = errRoom
	}
	if err == nil {
		all := append(bytes.Clone(data), bytes.Repeat([]byte(" "), int(info.Size())-len(data))...)
		stamp(all[len(data):], writes.Add(1))
		_, err = f.WriteAt(unsettled, 0)
		if err == nil {
			_, err = f.WriteAt(all[1:], 1)
		}
		if err == nil {
			_, err = f.WriteAt(all[:1], 0)
		}
	}
	return errors.Join(err, f.Close())
}

// writes counts what this process has written in place.
var writes atomic.Uint64

// stamp writes a number into the end of white space, a tab for each bit that is set: a reader
// that twice gets the same mixture of states, as they come in turn, sees that they differ.
func stamp(space []byte, n uint64) {
	for i := len(space) - 1; i >= 0 && n > 0; i, n = i-1, n/2 {
		if n%2 == 1 {
			space[i] = '\t'
		}
	}
}

// unsettled is the first byte of a file while it is overwritten, which JSON never has.
var unsettled = []byte("!")

// settled reads a file that its writer may overwrite meanwhile: what is read twice, and not
// marked as unsettled, is of one state, as the mark is there before anything changes.
func settled(f *os.File) (data []byte, err error) {
	for range 100 {
		before := data
		if data, err = io.ReadAll(io.NewSectionReader(f, 0, maxSize+1)); err != nil {
			return nil, err
		}
		if len(data) > maxSize {
			return nil, fmt.Errorf("more than %d bytes", maxSize)
		}
		if bytes.HasPrefix(data, unsettled) {
			time.Sleep(time.Millisecond)
		} else if before != nil && bytes.Equal(before, data) {
			return data, nil
		}
	}
	return nil, errors.New("it changes all the time")
}
