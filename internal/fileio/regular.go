package fileio

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

var ErrOther = errors.New("not a regular file")

// Root opens files: an *os.Root, or the file system by FS.
type Root interface {
	OpenFile(name string, flag int, perm os.FileMode) (*os.File, error)
	Stat(name string) (os.FileInfo, error)
}

// FS is the Root of all files.
type FS struct{}

// OpenFile is os.OpenFile.
func (FS) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// Stat is os.Stat.
func (FS) Stat(name string) (os.FileInfo, error) { return os.Stat(name) }

// Open opens a regular file, or a link to one, for reading: a FIFO in a folder blocks its reader
// forever, and so does a link to a terminal. A directory is EISDIR, anything else ErrOther. It
// checks before opening, as opening a device may have effects, and again after that, as the file
// may have been replaced: a FIFO is opened without waiting.
func Open(root Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := check(name, info); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(name, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Named is Open for a file that the user named, which may be standard input or a shell's
// <(command): a pipe under the name of a descriptor.
func Named(name string) (*os.File, error) {
	if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/self/fd/") {
		return os.Open(name)
	}
	return Open(FS{}, name)
}

func check(name string, info os.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return &os.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	case !mode.IsRegular():
		return &os.PathError{Op: "open", Path: name, Err: ErrOther}
	}
	return nil
}
