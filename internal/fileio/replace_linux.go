package fileio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write makes data the content of path atomically: a reader, also after a power failure, gets
// the old file or the new one and never a part of either. A file with the same content is not
// touched, and changed is false. A replaced file keeps its mode, owner and SELinux label; mode is
// for a new file. A symbolic link at path is replaced by a regular file. On an error the old
// file is unchanged.
//
// The directory must exist. Several processes may write the same path.
func Write(path string, data []byte, mode fs.FileMode) (changed bool, err error) {
	old, err := regular(path)
	if err != nil {
		return false, err
	}
	if old != nil {
		if same, err := holds(path, old, data); same || err != nil {
			return false, err
		}
		mode = old.Mode().Perm()
	}
	err = replace(path, old, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	return err == nil, err
}

// Install makes path a copy of src with a mode, whatever mode a file at path had.
func Install(path string, src io.Reader, mode fs.FileMode) error {
	old, err := regular(path)
	if err != nil {
		return err
	}
	return replace(path, old, mode, func(f *os.File) error {
		_, err := io.Copy(f, src)
		return err
	})
}

// Remove removes a file durably; a missing one is no error.
func Remove(path string) (changed bool, err error) {
	// A read-only disk refuses to remove even a missing file.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := os.Remove(path); err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// regular describes the regular file at path; nil when there is none.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "replace", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, nil
	}
	return info, nil
}

func holds(path string, info fs.FileInfo, data []byte) (bool, error) {
	if info.Size() != int64(len(data)) {
		return false, nil
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	return bytes.Equal(got, data), nil
}

// replace writes a temporary file next to path and renames it.
func replace(path string, old fs.FileInfo, mode fs.FileMode, write func(*os.File) error) (err error) {
	temp := tempName(path)
	f, err := openTemp(temp)
	if err != nil {
		return err
	}
	// Closing releases the lock, so it comes after the name is free again.
	defer f.Close()
	defer func() {
		if err != nil {
			os.Remove(temp)
			err = fmt.Errorf("replacing %s: %w", path, err)
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := inherit(f, path, old, mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// inherit sets the mode of f and, where there is an old file, copies its owner and SELinux
// label: a container's new file would get its directory's.
func inherit(f *os.File, path string, old fs.FileInfo, mode fs.FileMode) error {
	if old != nil {
		if was, ok := old.Sys().(*syscall.Stat_t); ok && (int(was.Uid) != os.Geteuid() || int(was.Gid) != os.Getegid()) {
			if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
				return err
			}
		}
		copyLabel(path, f)
	}
	return f.Chmod(mode)
}

// syncDir makes renames and removals in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
