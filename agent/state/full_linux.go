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

// reserve is the least free room in a file for the next state, in bytes. Padded files
// fill whole pages, which /run allocates anyway.
const reserve = 4096

// padded appends spaces to data, so that a longer state can replace it on a full disk.
func padded(data []byte) []byte {
	size := (len(data) + 2*reserve - 1) / reserve * reserve
	return append(bytes.Clone(data), bytes.Repeat([]byte(" "), size-len(data))...)
}

// errRoom reports a state longer than the file of the previous one.
var errRoom = errors.New("no room in the file")

// overwrite overwrites the state in a file locked by this process, without a new block on
// disk. Closing the file wakes its watchers.
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

// writes counts the writes in place by this process.
var writes atomic.Uint64

// stamp encodes a number in the trailing white space, a tab for each set bit: a reader
// that reads the same mixture of states twice, because states alternate, notices the
// difference.
func stamp(space []byte, n uint64) {
	for i := len(space) - 1; i >= 0 && n > 0; i, n = i-1, n/2 {
		if n%2 == 1 {
			space[i] = '\t'
		}
	}
}

// unsettled is the first byte of a file while it is overwritten; JSON never begins with
// it.
var unsettled = []byte("!")

// Settled reads a state file, which its writer may overwrite: data read twice, and not marked
// unsettled, is a single state, because the mark is written before any change.
func Settled(f *os.File) (data []byte, err error) {
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
