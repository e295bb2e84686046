package machine

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// copied files of this machine belong to its operating system: programs look users,
// libraries and ports up in them.
var copied = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/protocols", "/etc/services"}

// install puts into an empty root what an operating system's image brings.
func (m *Machine) install() error {
	for _, dir := range []string{"dev", "proc", "sys", "usr", "root", "opt", "var/tmp", "etc/selinux"} {
		if err := m.MkdirAll("/" + dir); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(m.localDir(), "bin"), 0o755), os.Chmod(m.Path("/tmp"), 0o777|fs.ModeSticky)); err != nil {
		return err
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		target, err := os.Readlink(filepath.Join(m.system, dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil { // /bin -> usr/bin
			err = os.Symlink(target, m.Path(dir))
		}
		if err != nil {
			return fmt.Errorf("machines need a system whose %s is in /usr: %w", dir, err)
		}
	}
	if m.init {
		return m.copySystem()
	}
	return m.imitateSystem()
}

// copySystem copies what of the operating system is to be changed by the machine. It
// leaves the machine without a name, as one that waits for the network's.
func (m *Machine) copySystem() error {
	cmd := exec.Command("cp", "-a", filepath.Join(m.system, "etc"), filepath.Join(m.system, "var"), m.Path("/"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s: %w: %s", m.system, err, out)
	}
	return errors.Join(os.Remove(m.Path("/etc/hostname")), m.Write("/etc/selinux/config", []byte(noSELinux)))
}

// noSELinux has Ignition label nothing.
const noSELinux = "SELINUX=disabled\n"

// imitateSystem makes files that an operating system has.
func (m *Machine) imitateSystem() error {
	for _, file := range copied {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = m.Write(file, data)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink("../usr/lib/os-release", m.Path("/etc/os-release")),
		m.Write("/etc/machine-id", fmt.Appendf(nil, "%x\n", md5.Sum([]byte(m.Name)))),
		// What NetworkManager writes; a network without a name server.
		m.Write("/etc/resolv.conf", nil),
		m.Write("/etc/selinux/config", []byte(noSELinux)),
	)
}
