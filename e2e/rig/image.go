package rig

import (
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/e2e/image"
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
// sandbox of each pod.
func ToolsArchive(t testing.TB) string {
	t.Helper()
	i, err := image.Debian(ToolsImage, Made, "/usr/bin/dash", "/usr/bin/sleep", "/usr/bin/cat", "/usr/bin/touch")
	if err == nil {
		i.Config.User = ""
		i.Config.Entrypoint = []string{"/usr/bin/sleep", "infinity"}
	}
	return Archive(t, i, err)
}

// AgentArchive is vipgen's own image, from the source.
func AgentArchive(t testing.TB, name string) string {
	t.Helper()
	i, err := image.Vipgen(t.Context(), image.Source{Dir: "../..", Version: "devel"}, name, []v1.Platform{image.Here()}, Made, t.TempDir())
	return Archive(t, i, err)
}
