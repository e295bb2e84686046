package image

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/vipgen/vipgen/internal/testkit"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390}

// TestVipgenImage checks the archive of vipgen's image as a registry would.
func TestVipgenImage(t *testing.T) {
	i := vipgenImage(t)
	_, index := open(t, i)
	testkit.Must(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	testkit.Must(t, err)
	if !maps.Equal(manifest.Annotations, i.Config.Labels) {
		t.Errorf("annotations %v", manifest.Annotations)
	}
	if len(manifest.Manifests) != len(platforms()) {
		t.Fatalf("%d platforms", len(manifest.Manifests))
	}
	for n, d := range manifest.Manifests {
		t.Run(d.Platform.String(), func(t *testing.T) {
			image, err := index.Image(d.Digest)
			testkit.Must(t, err)
			checkConfig(t, image, i.Config, *d.Platform)
			checkFiles(t, image, &i.Contents[n])
		})
	}
}

func checkConfig(t *testing.T, image v1.Image, want v1.Config, p v1.Platform) {
	t.Helper()
	c, err := image.ConfigFile()
	testkit.Must(t, err)
	if c.OS != p.OS || c.Architecture != p.Architecture || !c.Created.Equal(epoch) {
		t.Errorf("made for %s/%s at %v", c.OS, c.Architecture, c.Created)
	}
	testkit.Equal(t, want, c.Config)
}

func checkFiles(t *testing.T, image v1.Image, c *Content) {
	t.Helper()
	got := entries(t, image)
	for path, e := range got {
		if e.UID != 0 || e.GID != 0 || !e.At.Equal(epoch) || e.Mode&0o022 != 0 {
			t.Errorf("%s: %+v", path, e)
		}
		if !strings.HasPrefix(path, "/licenses") && !slices.Contains([]string{
			"/usr", "/usr/bin", "/usr/bin/vipgen", "/usr/bin/vipgen-agent", "/usr/bin/vipgen-bgp",
			"/usr/share", "/usr/share/doc", "/usr/share/doc/vipgen", "/usr/share/doc/vipgen/sbom.spdx.json",
		}, path) {
			t.Errorf("%s is not needed", path)
		}
	}
	if got["/licenses/github.com/vipgen/vipgen/LICENSE"].Size == 0 {
		t.Error("no licence")
	}
	for _, name := range programs {
		f := c.Rootfs.files["/usr/bin/"+name]
		testkit.Equal(testkit.In(t, name), 0o755, got[f.Path].Mode)
		program, err := elf.Open(f.Source)
		testkit.Must(t, err)
		defer program.Close()
		if program.Machine != machines[c.Platform.Architecture] {
			t.Errorf("%s is for %v", name, program.Machine)
		}
		if needed, err := program.ImportedLibraries(); len(needed) > 0 || err != nil {
			t.Errorf("%s needs %v, %v", name, needed, err)
		}
	}
}

// shownName returns the name that a program gives itself: vipgen-bgp is vipgen-agent with a
// BGP speaker.
func shownName(program string) string {
	if program == "vipgen-bgp" {
		return "vipgen-agent"
	}
	return program
}

// TestDaemonImages: the daemons, their libraries, licences, and no shell.
func TestDaemonImages(t *testing.T) {
	want := []string{"/usr/sbin/keepalived", "/usr/sbin/haproxy", "/usr/bin/coredns"}
	second := daemonImages(t)
	for n, i := range daemonImages(t) {
		archive, index := open(t, i)
		testkit.Must(t, validate.Index(index))
		other, _ := open(t, second[n])
		if a, b := fileSum(t, archive), fileSum(t, other); a != b {
			t.Errorf("%s: the second one differs", i.Name)
		}
		files := i.Contents[0].Rootfs.files
		if _, ok := files[want[n]]; !ok {
			t.Errorf("%s has no %s", i.Name, want[n])
		}
		for path := range files {
			if base := filepath.Base(path); base == "sh" || base == "bash" || base == "dash" || base == "passwd" {
				t.Errorf("%s has %s", i.Name, path)
			}
		}
	}
}

func fileSum(t *testing.T, name string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256(testkit.ReadFile(t, name)))
}

func TestTime(t *testing.T) {
	i, err := Debian("registry.example.com/x:1", time.Unix(1_000_000_000, 0), "/usr/sbin/haproxy")
	testkit.Must(t, err)
	_, index := open(t, i)
	manifest, err := index.IndexManifest()
	testkit.Must(t, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	testkit.Must(t, err)
	for path, e := range entries(t, image) {
		testkit.Equal(testkit.In(t, path), 1_000_000_000, e.At.Unix())
	}
	if c, err := image.ConfigFile(); err != nil || c.Created.Unix() != 1_000_000_000 {
		t.Errorf("%v, %v", c.Created, err)
	}
}

func TestBadNames(t *testing.T) {
	for name, want := range map[string]string{
		"vipgen":                     "whole name",
		"registry.example.com/x":     "no tag",
		"registry.example.com/X:1":   "lowercase",
		"registry.example.com/x@abc": "whole name",
	} {
		dir := t.TempDir()
		_, err := (&Image{Name: name}).WriteArchive(filepath.Join(dir, "a.tar"))
		testkit.Fails(testkit.In(t, name), err, want)
		if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
			t.Errorf("%s left %v, %v", name, left, err)
		}
	}
}

func TestBadVersion(t *testing.T) {
	for _, v := range []string{"", "-v", "a b", `x" -X y=z`} {
		testkit.Fails(testkit.In(t, v), (Source{top, v}).build(t.Context(), Platforms()[0], programs, t.TempDir()), "such as v1.2.3")
	}
}

// TestForeignFile: images of packages hold only files of packages.
func TestForeignFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(name, []byte("x"), 0o755))
	var r Rootfs
	if _, err := debianFiles(&r, name); err == nil || !strings.Contains(err.Error(), "not from a Debian package") {
		t.Error(err)
	}
	p := debianPackage{Component: Component{Name: "x"}, sums: map[string]string{name: "0"}}
	testkit.Fails(t, p.check(name), "apt-get install --reinstall x")
}
