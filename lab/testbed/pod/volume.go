package pod

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// volumes returns the paths of a pod's volumes on this machine, by name. A missing file or
// directory of the host is an error if the volume's type requires it.
func volumes(h *host.Host, dir string, list []corev1.Volume) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range list {
		var err error
		if v.HostPath != nil {
			out[v.Name], err = hostPath(h, v.HostPath)
		} else {
			out[v.Name], err = emptyDir(h, filepath.Join(dir, "volumes/kubernetes.io~empty-dir", v.Name), v.EmptyDir)
		}
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return out, nil
}

func hostPath(h *host.Host, v *corev1.HostPathVolumeSource) (string, error) {
	path, kind := h.Path(v.Path), corev1.HostPathUnset
	if v.Type != nil {
		kind = *v.Type
	}
	switch kind {
	case corev1.HostPathDirectoryOrCreate:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return "", err
		}
		kind = corev1.HostPathDirectory
	case corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(path, os.O_CREATE, 0o644)
		if err != nil {
			return "", err
		}
		f.Close()
		kind = corev1.HostPathFile
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !isKind(info.Mode(), kind) {
		return "", fmt.Errorf("%s is not a %s", v.Path, kind)
	}
	return path, nil
}

func isKind(m fs.FileMode, kind corev1.HostPathType) bool {
	switch kind {
	case corev1.HostPathUnset:
		return true
	case corev1.HostPathDirectory:
		return m.IsDir()
	case corev1.HostPathFile:
		return m.IsRegular()
	case corev1.HostPathSocket:
		return m.Type() == fs.ModeSocket
	case corev1.HostPathCharDev:
		return m.Type() == fs.ModeDevice|fs.ModeCharDevice
	case corev1.HostPathBlockDev:
		return m.Type() == fs.ModeDevice
	}
	return false
}

// emptyDir creates a directory that lasts as long as the pod. In memory it is a mount of the host,
// which this machine does not see.
func emptyDir(h *host.Host, path string, v *corev1.EmptyDirVolumeSource) (string, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return "", err
	}
	if err := os.Chmod(path, 0o777); err != nil { // independent of the umask
		return "", err
	}
	if v.Medium != corev1.StorageMediumMemory {
		return path, nil
	}
	return path, run(h, "mount", "-t", "tmpfs", "-o", "mode=0777", "tmpfs", path)
}

// removeVolumes removes the volumes of a pod from its host.
func removeVolumes(h *host.Host, dir string, list []corev1.Volume) error {
	for _, v := range list {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory && h.On() {
			if err := run(h, "umount", filepath.Join(dir, "volumes/kubernetes.io~empty-dir", v.Name)); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}
