package fileio

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tempName returns the same name for every write of a path, so that the file of a killed
// process is reused and not left forever. It begins with a dot and has no suffix that kubelet,
// systemd or a daemon reads.
func tempName(path string) string {
	dir, base := filepath.Split(path)
	return filepath.Join(dir, "."+base+".vipgen-new")
}

// openTemp opens an empty temporary file for this process alone.
func openTemp(name string) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = lock(f)
		if err == nil && !isAt(f, name) {
			f.Close() // the writer before renamed or removed it
			continue
		}
		if err == nil {
			err = f.Truncate(0)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
}

// lock waits until no other process holds the file's lock, which ends with the process.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}

// isAt reports whether name still leads to the open file.
func isAt(f *os.File, name string) bool {
	opened, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(opened, named)
}

// copyLabel copies the SELinux label of the file at path to f. Without SELinux, or without
// permission, f keeps the kernel's.
func copyLabel(path string, f *os.File) {
	const attribute = "security.selinux"
	label := make([]byte, 256)
	n, err := unix.Lgetxattr(path, attribute, label)
	if err == nil && n > 0 {
		_ = unix.Fsetxattr(int(f.Fd()), attribute, label[:n], 0)
	}
}
