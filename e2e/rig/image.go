package rig

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/internal/image"
)

// Made is the time of all files in images.
var Made = time.Unix(0, 0)

// ToolsImage is the name of an image with what pods of tests run: see ToolsArchive.
const ToolsImage = "localhost/tools:1"

// Archive writes an image that was made into an archive, whose path it returns.
func Archive(t testing.TB, i *image.Image, err error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err == nil {
		_, err = i.WriteArchive(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ToolsArchive is an image with a shell and what it calls, and for containerd the
// sandbox of each pod, which ends when it is told to.
func ToolsArchive(t testing.TB) string {
	t.Helper()
	i, err := image.Debian(ToolsImage, Made, "/usr/bin/dash", "/usr/bin/sleep", "/usr/bin/cat", "/usr/bin/touch")
	if err == nil {
		i.Config.User = ""
		i.Config.Entrypoint = []string{"/usr/bin/dash", "-c", "trap 'exit 0' TERM; sleep infinity & wait"}
	}
	return Archive(t, i, err)
}

// AgentArchive is vipgen's own image, from the source.
func AgentArchive(t testing.TB, name string) string {
	t.Helper()
	i, err := image.Vipgen(t.Context(), image.Source{Dir: "../..", Version: "devel"}, name, []v1.Platform{image.Here()}, Made, t.TempDir())
	return Archive(t, i, err)
}

// OperatorsArchive is an image with what the operator's keepalived and HAProxy, as
// package lab/reference has them, and their scripts run.
func OperatorsArchive(t testing.TB, name string) string {
	t.Helper()
	programs := []string{
		"/usr/sbin/keepalived", "/usr/sbin/haproxy", "/usr/sbin/nft", "/bin/bash", "/usr/bin/curl", "/usr/bin/ip",
		"/usr/bin/cat", "/usr/bin/cksum", "/usr/bin/cmp", "/usr/bin/cp", "/usr/bin/grep", "/usr/bin/mkfifo", "/usr/bin/mv", "/usr/bin/rm", "/usr/bin/sleep", "/usr/bin/timeout", "/usr/bin/touch",
	}
	i, err := image.Debian(name, Made, programs...)
	if err == nil {
		i.Config.User = ""
		root := &i.Contents[0].Rootfs
		err = errors.Join(
			root.Add(image.File{Path: "/run", Mode: fs.ModeDir | 0o755}),
			root.Add(image.File{Path: "/tmp", Mode: fs.ModeDir | 0o755}), // keepalived shows that it lives by a file there
			root.Add(image.File{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0::/root:/bin/bash\n")}),
		)
	}
	return Archive(t, i, err)
}
