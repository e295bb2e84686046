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

// copied are files of this machine that belong to the operating system: programs look up users,
// libraries and ports in them.
var copied = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/protocols", "/etc/services"}

// install writes the content of an operating system's image into an empty root.
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

// copySystem copies the writable part of the operating system. The machine has no host name, as
// before the network provides one.
func (m *Machine) copySystem() error {
	cmd := exec.Command("cp", "-a", filepath.Join(m.system, "etc"), filepath.Join(m.system, "var"), m.Path("/"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s: %w: %s", m.system, err, out)
	}
	return errors.Join(os.Remove(m.Path("/etc/hostname")), m.Write("/etc/selinux/config", []byte(noSELinux)))
}

// noSELinux prevents Ignition from labelling files.
const noSELinux = "SELINUX=disabled\n"

// imitateSystem writes files of an operating system.
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
		// As NetworkManager writes it on a network without a name server.
		m.Write("/etc/resolv.conf", nil),
		m.Write("/etc/selinux/config", []byte(noSELinux)),
	)
}
