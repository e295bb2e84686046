package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// runSize is the size of a host's /run in bytes, of which nodes use less than a megabyte.
const runSize = 64 << 20

// NewWithRun is New with a file system at /run, until Close, as an init mounts it.
func NewWithRun(node *netns.Node, dir string) (*Host, error) {
	h := &Host{Node: node, dir: dir}
	err := h.create()
	if err == nil {
		err = h.mountRun()
	}
	if err != nil {
		return nil, err
	}
	return h, h.PowerOn()
}

func (h *Host) mountRun() error {
	err := unix.Mount("vipgen-lab", h.Path("/run"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, runOptions(runSize))
	return os.NewSyscallError("mount", err)
}

// UnmountRun unmounts /run of a host whose NewWithRun had this directory, also of a process that was killed.
// It is no error if nothing is mounted.
func UnmountRun(dir string) error {
	err := unix.Unmount(filepath.Join(dir, "root/run"), unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return os.NewSyscallError("umount", err)
}

// FillRun leaves /run of NewWithRun without space for new data, until restore.
func (h *Host) FillRun() (restore func() error, err error) {
	var now unix.Statfs_t
	if err := unix.Statfs(h.Path("/run"), &now); err != nil {
		return nil, os.NewSyscallError("statfs", err)
	}
	used := (now.Blocks - now.Bfree) * uint64(now.Bsize)
	return func() error { return h.resizeRun(runSize) }, h.resizeRun(max(used, uint64(now.Bsize)))
}

func (h *Host) resizeRun(size uint64) error {
	err := unix.Mount("", h.Path("/run"), "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, runOptions(size))
	return os.NewSyscallError("mount", err)
}

func runOptions(size uint64) string { return fmt.Sprintf("mode=755,size=%d", size) }
