package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// InMemory puts the temporary directories of a test program into memory, if this machine has a
// gigabyte there, where it may also run programs: vipgen writes whole trees durably, which takes
// longer on a disk than rendering them. It is for TestMain.
func InMemory() {
	const dir = "/dev/shm"
	var s unix.Statfs_t
	roomy := unix.Statfs(dir, &s) == nil && s.Type == unix.TMPFS_MAGIC && s.Flags&unix.ST_NOEXEC == 0 && s.Bavail*uint64(s.Bsize) >= 1<<30
	if roomy && unix.Access(dir, unix.W_OK) == nil && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
}

// SmallDisk returns a directory on its own file system of 64 KiB, in memory. The test needs root.
func SmallDisk(t testing.TB) (dir string) {
	t.Helper()
	Privileged(t)
	dir = t.TempDir()
	Must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { Check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// FillDisk fills a SmallDisk until the returned function is called.
func FillDisk(t testing.TB, dir string) (empty func()) {
	t.Helper()
	rubbish := filepath.Join(dir, "rubbish")
	if err := os.WriteFile(rubbish, make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() { Must(t, os.Remove(rubbish)) }
}

// LockDisk makes a SmallDisk read-only until the returned function is called.
func LockDisk(t testing.TB, dir string) (unlock func()) {
	t.Helper()
	Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	return func() { Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64k")) }
}
