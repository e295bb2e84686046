package rig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Made is the time of all files in images.
var Made = time.Unix(0, 0)

// ToolsImage is the name of the image with the programs for pods of tests: see ToolsArchive.
const ToolsImage = "localhost/tools:1"

// Archive writes an image into an archive and returns its path.
func Archive(t testing.TB, i *image.Image, err error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err == nil {
		_, err = i.WriteArchive(path)
	}
	testkit.Must(t, err)
	return path
}

// ToolsArchive returns an archive of an image with a shell and its tools. containerd also uses it
// for the sandbox of each pod, which ends on a signal.
func ToolsArchive(t testing.TB) string {
	t.Helper()
	i, err := image.Debian(ToolsImage, Made, "/usr/bin/dash", "/usr/bin/sleep")
	if err == nil {
		i.Config.User = ""
		i.Config.Entrypoint = []string{"/usr/bin/dash", "-c", "trap 'exit 0' TERM; sleep infinity & wait"}
	}
	return Archive(t, i, err)
}

// AgentArchive returns an archive of vipgen's image, built from the source.
func AgentArchive(t testing.TB, name string) string {
	t.Helper()
	i, err := image.Vipgen(t.Context(), image.Source{Dir: "../../..", Version: "devel"}, name, []v1.Platform{image.Here()}, Made, t.TempDir())
	return Archive(t, i, err)
}

// operatorsTools are the programs in the scripts of the operator's keepalived and HAProxy.
var operatorsTools = []string{
	"/usr/sbin/nft", "/bin/bash", "/usr/bin/curl", "/usr/bin/ip",
	"/usr/bin/cat", "/usr/bin/cksum", "/usr/bin/cmp", "/usr/bin/cp", "/usr/bin/grep", "/usr/bin/mkfifo", "/usr/bin/mv", "/usr/bin/rm", "/usr/bin/sleep", "/usr/bin/timeout", "/usr/bin/touch",
}

// OperatorsArchive returns an archive of an image for the operator's keepalived and HAProxy, as in
// package lab/testbed/reference, with the daemons of the Debian at root (see
// testkit/daemon.Generation), and their scripts with tools of this machine.
func OperatorsArchive(t testing.TB, name, root string) string {
	t.Helper()
	programs := operatorsTools
	if root == "/" {
		programs = slices.Concat([]string{"/usr/sbin/keepalived", "/usr/sbin/haproxy"}, programs)
	}
	i, err := image.Debian(name, Made, programs...)
	if err == nil && root != "/" {
		err = under(i, root)
	}
	if err == nil {
		i.Config.User = ""
		files := &i.Contents[0].Rootfs
		err = errors.Join(
			files.Add(image.File{Path: "/run", Mode: fs.ModeDir | 0o755}),
			files.Add(image.File{Path: "/tmp", Mode: fs.ModeDir | 0o755}), // for keepalived's liveness file
			files.Add(image.File{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0::/root:/bin/bash\n")}),
		)
	}
	return Archive(t, i, err)
}

// under adds the programs and libraries below a root to an image, except for paths that the image
// already has.
func under(i *image.Image, root string) error {
	var out image.Rootfs
	there := map[string]bool{}
	add := func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := image.File{Path: strings.TrimPrefix(name, filepath.Clean(root)), Mode: info.Mode() & (fs.ModePerm | fs.ModeSymlink), Source: name}
		if f.Mode&fs.ModeSymlink != 0 {
			f.Mode, f.Source = fs.ModeSymlink|0o777, ""
			if f.Link, err = os.Readlink(name); err != nil {
				return err
			}
		}
		there[f.Path] = true
		return out.Add(f)
	}
	for _, dir := range []string{"usr", "bin", "sbin", "lib", "lib64"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), add); err != nil {
			return err
		}
	}
	for _, f := range i.Contents[0].Rootfs.Files() {
		if there[f.Path] || f.Mode.IsDir() {
			continue
		}
		if err := out.Add(f); err != nil {
			return err
		}
	}
	i.Contents[0].Rootfs = out
	return nil
}
