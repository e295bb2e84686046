//go:build unix

package tree

import (
	"errors"
	"os"
	"syscall"
)

// lock marks a folder as in use until the file is closed, at the latest when the process ends.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errInUse
		}
		return nil, err
	}
	return f, nil
}

// syncDir makes the names in a folder durable.
func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
