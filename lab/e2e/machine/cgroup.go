package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// hierarchies is the mount point of this machine's hierarchies.
const hierarchies = "/sys/fs/cgroup"

// makeCgroups creates a control group in every hierarchy and returns their directories.
func makeCgroups(group string) ([]string, error) {
	dirs, err := cgroupDirs(group)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		// A new group of the cpuset controller has no processors and no memory, and accepts no
		// process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(dir, file); err != nil {
				return nil, err
			}
		}
	}
	return dirs, nil
}

// inherit copies a setting from the parent of a group, if the group's controller has it.
func inherit(dir, file string) error {
	value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, file), value, 0)
	}
	return err
}

// cgroupDirs returns the directories of a control group in every hierarchy.
func cgroupDirs(group string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(hierarchies, "cgroup.controllers")); err == nil {
		return nil, fmt.Errorf("%s is of version 2: machines need version 1 (boot with systemd.unified_cgroup_hierarchy=0)", hierarchies)
	}
	roots, err := filepath.Glob(filepath.Join(hierarchies, "*", "cgroup.procs"))
	if err == nil && len(roots) == 0 {
		err = fmt.Errorf("no control groups are mounted below %s", hierarchies)
	}
	var dirs []string
	for _, procs := range roots {
		root := filepath.Dir(procs)
		if info, e := os.Lstat(root); e == nil && info.IsDir() { // no link to a hierarchy of several controllers
			dirs = append(dirs, filepath.Join(root, group))
		}
	}
	return dirs, err
}

// inCgroups returns a command line that enters control groups before it runs the command, by
// /bin/sh.
func inCgroups(command, groups []string) []string {
	const move = `while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@"`
	args := append([]string{"sh", "-c", move, "sh"}, groups...)
	return append(append(args, "--"), command...)
}
