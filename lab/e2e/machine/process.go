package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process is a process of a container, from this machine's /proc.
type Process struct {
	PID  int
	Name string // as the kernel reports it, at most 15 bytes
	// Bounding, Permitted and Effective are sets of capabilities, one bit each (capabilities(7)).
	Bounding, Permitted, Effective uint64
	NoNewPrivileges                bool
	UID                            int
	// ReadOnlyRoot is set if its root file system is mounted read-only.
	ReadOnlyRoot bool
}

// Processes returns the processes of a container, by its ID in the status of a pod without
// "containerd://".
func (m *Machine) Processes(containerID string) ([]Process, error) {
	group, err := m.containerGroup("pids", containerID)
	if err != nil {
		return nil, err
	}
	pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var out []Process
	for _, field := range strings.Fields(string(pids)) {
		p, err := readProcess(filepath.Join("/proc", field))
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// ended reports whether an error in reading a process means that the process has ended: its
// directory is gone, or still exists without mounts.
func ended(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EINVAL)
}

// containerGroup returns a container's control group of a controller.
func (m *Machine) containerGroup(controller, containerID string) (group string, err error) {
	err = filepath.WalkDir(filepath.Join(hierarchies, controller, m.Cgroup()), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == containerID {
			group = path
			return fs.SkipAll
		}
		return err
	})
	if err == nil && group == "" {
		err = fmt.Errorf("no container %s runs on %s", containerID, m.Name)
	}
	return group, err
}

// readProcess reads proc_pid_status(5) and proc_pid_mountinfo(5).
func readProcess(dir string) (p Process, err error) {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return p, err
	}
	var errs []error
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "Name":
			p.Name = value
		case "Pid":
			p.PID, err = strconv.Atoi(value)
		case "Uid":
			p.UID, err = strconv.Atoi(strings.Fields(value)[0])
		case "CapBnd":
			p.Bounding, err = strconv.ParseUint(value, 16, 64)
		case "CapPrm":
			p.Permitted, err = strconv.ParseUint(value, 16, 64)
		case "CapEff":
			p.Effective, err = strconv.ParseUint(value, 16, 64)
		case "NoNewPrivs":
			p.NoNewPrivileges = value == "1"
		}
		errs = append(errs, err)
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == "/" {
			p.ReadOnlyRoot = strings.HasPrefix(fields[5]+",", "ro,") // the last mount is on top
		}
	}
	return p, errors.Join(append(errs, err)...)
}
