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

// cgroupRoot is where the hierarchies of control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// Cgroup is the control group, in every hierarchy, below which those of the
// host's containers are.
func (h *Host) Cgroup() string { return "/" + h.Namespace() }

// CgroupFiles are the files that take the numbers of processes which enter a control group, one
// of every hierarchy that has it.
func CgroupFiles(group string) []string {
	files, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", group, "cgroup.procs")) // the pattern is well-formed
	one, _ := filepath.Glob(filepath.Join(cgroupRoot, group, "cgroup.procs"))
	return append(files, one...)
}

// RemoveCgroups removes a control group and those below it from every
// hierarchy. Nothing may run in them but what is ending.
func RemoveCgroups(group string) error {
	places, err := filepath.Glob(filepath.Join(cgroupRoot, "*", group))
	places = append(places, filepath.Join(cgroupRoot, group)) // where there is one hierarchy
	for _, place := range places {
		err = errors.Join(err, removeDirs(place))
	}
	return err
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

// removeDir waits a little: a killed process leaves its group some time after
// its parent knows that it has ended.
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
