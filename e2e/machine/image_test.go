package machine

import (
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/e2e/image"
)

// made is the time of all files in images.
var made = time.Unix(0, 0)

// write writes an image that was made into an archive, whose path it returns.
func write(t *testing.T, i *image.Image, err error) string {
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

// toolsArchive is an image with what pods of tests run, and containerd for the
// sandbox of each pod.
func toolsArchive(t *testing.T) string {
	t.Helper()
	i, err := image.Debian(toolsImage, made, "/usr/bin/dash", "/usr/bin/sleep", "/usr/bin/cat", "/usr/bin/touch")
	if err == nil {
		i.Config.User = ""
		i.Config.Entrypoint = []string{"/usr/bin/sleep", "infinity"}
	}
	return write(t, i, err)
}

// agentArchive is vipgen's own image.
func agentArchive(t *testing.T, name string) string {
	t.Helper()
	i, err := image.Vipgen(t.Context(), image.Source{Dir: "../..", Version: "devel"}, name, []v1.Platform{image.Here()}, made, t.TempDir())
	return write(t, i, err)
}
