package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Image is what a container finds in its root file system.
type Image struct {
	// Distribution says that the programs and libraries of this machine are in
	// it: /usr, read-only, and the links to it.
	Distribution bool
	// Programs are files of this machine, by their paths in the image.
	Programs map[string]string
}

// systemFiles of this machine are copied into images with its distribution:
// programs look users, libraries and ports up in them.
var systemFiles = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/protocols", "/etc/services"}

// unpack makes a root file system in an empty directory, and returns what is to
// be mounted into it.
func (i Image) unpack(root string) ([]specs.Mount, error) {
	for _, dir := range []string{"dev", "etc", "proc", "run", "sys", "tmp", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	var mounts []specs.Mount
	if i.Distribution {
		var err error
		if mounts, err = distribution(root); err != nil {
			return nil, err
		}
	}
	for _, inside := range slices.Sorted(maps.Keys(i.Programs)) {
		if _, err := os.Stat(i.Programs[inside]); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		mounts = append(mounts, bind(i.Programs[inside], inside, "ro"))
	}
	return mounts, nil
}

func distribution(root string) ([]specs.Mount, error) {
	mounts := []specs.Mount{bind("/usr", "/usr", "ro")}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		target, err := os.Readlink(dir)
		switch {
		case err == nil: // /bin -> usr/bin
			if err := os.Symlink(target, filepath.Join(root, dir)); err != nil {
				return nil, err
			}
		case !errors.Is(err, fs.ErrNotExist):
			mounts = append(mounts, bind(dir, dir, "ro"))
		}
	}
	for _, file := range systemFiles {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, file), data, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	return mounts, nil
}

func bind(from, to string, options ...string) specs.Mount {
	return specs.Mount{Destination: to, Type: "bind", Source: from, Options: append([]string{"rbind"}, options...)}
}
