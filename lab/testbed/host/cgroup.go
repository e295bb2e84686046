package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// cgroupRoot is the mount point of the hierarchies of control groups.
const cgroupRoot = "/sys/fs/cgroup"

// Cgroup returns the parent control group of the host's containers, in every hierarchy.
func (h *Host) Cgroup() string { return "/" + h.Namespace() }

// CgroupFiles returns the cgroup.procs files of a control group, one of every hierarchy that has
// it.
func CgroupFiles(group string) []string {
	var files []string
	for _, dir := range cgroupDirs(group) {
		if file := filepath.Join(dir, "cgroup.procs"); exists(file) {
			files = append(files, file)
		}
	}
	return files
}

// RemoveCgroups removes a control group and its children from every hierarchy. All their processes
// must have ended or been killed.
func RemoveCgroups(group string) error {
	var err error
	for _, dir := range cgroupDirs(group) {
		err = errors.Join(err, removeDirs(dir))
	}
	return err
}

// cgroupDirs returns the directories of a control group: one for each of several hierarchies, or
// one in the unified hierarchy.
func cgroupDirs(group string) []string {
	dirs, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", group)) // the pattern is well-formed
	return append(dirs, filepath.Join(cgroupRoot, group))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// removeDirs removes a tree of directories, whose files are the kernel's.
func removeDirs(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		err = errors.Join(err, removeDir(dir))
	}
	return err
}

// removeDir retries for a moment: a killed process leaves its group shortly after its parent was
// notified.
func removeDir(dir string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Rmdir(dir)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
}
