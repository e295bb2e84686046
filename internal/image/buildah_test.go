package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/vipgen/vipgen/internal/testkit"
)

// buildah runs buildah with its own storage, as root and without the privileges that a separate
// container would need.
type buildah struct {
	t   *testing.T
	dir string
}

func newBuildah(t *testing.T) *buildah {
	t.Helper()
	testkit.Live(t)
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatalf("%v: run `make e2e-setup`", err)
	}
	return &buildah{t, t.TempDir()}
}

func (b *buildah) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("buildah", append([]string{
		"--root", filepath.Join(b.dir, "root"), "--runroot", filepath.Join(b.dir, "run"), "--storage-driver", "vfs",
	}, args...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("buildah %s: %v\n%s\n%s", args[0], err, out, complaints.String())
	}
	return strings.TrimSpace(string(out))
}

// goImage makes the image that the Containerfile builds in, in place of a registry's: it holds
// the Go that runs this test, and Debian's shell.
func (b *buildah) goImage() string {
	b.t.Helper()
	var shell Rootfs
	if _, err := debianPrograms(&shell, "/bin/sh"); err != nil {
		b.t.Fatal(err)
	}
	testkit.Must(b.t, shell.Add(File{Path: "/tmp", Mode: 0o777 | os.ModeDir}))
	root := filepath.Join(b.dir, "shell")
	testkit.Must(b.t, os.Mkdir(root, 0o755))
	testkit.Must(b.t, shell.Unpack(root, epoch))
	container := b.run("from", "scratch")
	b.run("copy", container, root, "/")
	b.run("copy", container, goEnv(b.t, "GOROOT"), "/usr/local/go")
	// No network: all modules are here.
	b.run("config", "--env", "PATH=/usr/local/go/bin:/usr/bin:/bin", "--env", "GOPATH=/go", "--env", "HOME=/root", "--env", "GOPROXY=off", "--env", "GOTOOLCHAIN=local", container)
	b.run("commit", "--quiet", container, "localhost/go:test")
	b.run("rm", container)
	return "localhost/go:test"
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	testkit.Must(t, err)
	return strings.TrimSpace(string(out))
}

// TestContainerfileBuilds runs the Containerfile with buildah, like a user with a registry, and
// compares the image with the one made without a registry: the same files, byte by byte, and
// the same configuration. One platform is this machine's, the other is not.
func TestContainerfileBuilds(t *testing.T) {
	b := newBuildah(t)
	goImage := b.goImage()
	for _, arch := range []string{runtime.GOARCH, "s390x"} {
		t.Run(arch, func(t *testing.T) {
			b := &buildah{t, b.dir}
			name := "localhost/vipgen:" + arch
			// buildah 1.28 does not set the builder's platform itself.
			b.run("build", "--build-arg", "BUILDPLATFORM="+Here().String(), "--isolation", "chroot", "--pull-never", "--timestamp", "0", "--format", "oci",
				"--build-arg", "GO_IMAGE="+goImage, "--build-arg", "VERSION=v1.2.3-test", "--build-arg", "REVISION="+Source{Dir: top}.revision(t.Context()), "--platform", "linux/"+arch,
				"--volume", goEnv(t, "GOMODCACHE")+":/go/pkg/mod", "--volume", goEnv(t, "GOCACHE")+":/root/.cache/go-build",
				"--tag", name, top)
			dir := filepath.Join(t.TempDir(), "oci")
			b.run("push", "--quiet", name, "oci:"+dir)
			compare(t, only(t, dir), arch)
		})
	}
}

// only reads the one image of a layout.
func only(t *testing.T, dir string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	testkit.Must(t, err)
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	testkit.Must(t, err)
	return image
}

// compare compares buildah's image with the one of that platform that was made without it.
func compare(t *testing.T, got v1.Image, arch string) {
	t.Helper()
	ours := vipgenImage(t)
	n := slices.IndexFunc(ours.Contents, func(c Content) bool { return c.Platform.Architecture == arch })
	one := *ours
	one.Contents = ours.Contents[n : n+1]
	_, index := open(t, &one)
	manifest, err := index.IndexManifest()
	testkit.Must(t, err)
	want, err := index.Image(manifest.Manifests[0].Digest)
	testkit.Must(t, err)
	testkit.Equal(t, entries(t, want), entries(t, got))
	config, err := got.ConfigFile()
	testkit.Must(t, err)
	if config.Architecture != arch || config.OS != "linux" || !config.Created.Equal(epoch) {
		t.Errorf("made for %s/%s at %v", config.OS, config.Architecture, config.Created)
	}
	delete(config.Config.Labels, "io.buildah.version")
	testkit.Equal(t, ours.Config, config.Config)
}
