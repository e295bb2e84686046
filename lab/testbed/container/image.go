package container

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/process"
)

// Image is the content of a container's root file system.
type Image struct {
	// Distribution adds the programs and libraries of this machine: /usr, read-only, and the links
	// to it.
	Distribution bool
	// Root is the root directory of another distribution to use instead of this machine's; empty
	// for none.
	Root string
	// Programs are files of this machine, by their paths in the image.
	Programs map[string]string
	// BindService are paths of the distribution's programs that get the file capability
	// cap_net_bind_service=ep, as haproxy has in OpenShift's image (hard case 28).
	BindService []string
}

// systemFiles are files of this machine that are copied into images with a distribution: programs
// look up users and ports in them. The list of libraries is the distribution's.
var systemFiles = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/protocols", "/etc/services"}

const libraries = "/etc/ld.so.cache"

// unpack creates a root file system in an empty directory and returns the mounts for it.
func (i Image) unpack(root string) ([]specs.Mount, error) {
	for _, dir := range []string{"dev", "etc", "proc", "run", "sys", "tmp", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	var mounts []specs.Mount
	if i.Distribution {
		var err error
		if mounts, err = distribution(cmp.Or(i.Root, "/"), root); err != nil {
			return nil, err
		}
	}
	for _, program := range i.BindService {
		capable, err := copyCapable(filepath.Join(i.Root, program), filepath.Join(root, ".capable"))
		if err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		mounts = append(mounts, bind(capable, program, "ro"))
	}
	for _, inside := range slices.Sorted(maps.Keys(i.Programs)) {
		if _, err := os.Stat(i.Programs[inside]); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		mounts = append(mounts, bind(i.Programs[inside], inside, "ro"))
	}
	return mounts, nil
}

// copyCapable copies a program of this machine into a directory and sets the file capability on the
// copy.
func copyCapable(program, dir string) (path string, err error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(program))
	if err := process.WriteProgram(path, data); err != nil {
		return "", err
	}
	return path, unix.Setxattr(path, "security.capability", bindServiceEP(), 0)
}

// bindServiceEP returns struct vfs_cap_data of linux/capability.h, in little endian: the revision
// with the flag that makes permitted capabilities effective, then permitted and inheritable ones,
// 32 at a time.
func bindServiceEP() []byte {
	const revision2, effective = 0x02000000, 1
	data := make([]byte, 20)
	binary.LittleEndian.PutUint32(data, revision2|effective)
	binary.LittleEndian.PutUint32(data[4:], 1<<unix.CAP_NET_BIND_SERVICE)
	return data
}

// distribution adds the programs and libraries of the distribution at from to a root.
func distribution(from, root string) ([]specs.Mount, error) {
	mounts := []specs.Mount{bind(filepath.Join(from, "usr"), "/usr", "ro")}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		target, err := os.Readlink(filepath.Join(from, dir))
		switch {
		case err == nil: // /bin -> usr/bin
			if err := os.Symlink(target, filepath.Join(root, dir)); err != nil {
				return nil, err
			}
		case !errors.Is(err, fs.ErrNotExist):
			mounts = append(mounts, bind(filepath.Join(from, dir), dir, "ro"))
		}
	}
	for _, file := range systemFiles {
		if err := copyFile(file, filepath.Join(root, file)); err != nil {
			return nil, err
		}
	}
	return mounts, copyFile(filepath.Join(from, libraries), filepath.Join(root, libraries))
}

// copyFile copies a file if it exists.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

func bind(from, to string, options ...string) specs.Mount {
	return specs.Mount{Destination: to, Type: "bind", Source: from, Options: append([]string{"rbind"}, options...)}
}
