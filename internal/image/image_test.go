package image

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
		testkit.Equal(testkit.In(t, name), machines[c.Platform.Architecture], program.Machine)
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
		testkit.Equal(testkit.In(t, i.Name), fileSum(t, other), fileSum(t, archive))
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

// TestForeignFile: images of packages hold only files of packages.
func TestForeignFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(name, []byte("x"), 0o755))
	var r Rootfs
	_, err := debianFiles(&r, name)
	testkit.Fails(t, err, "not from a Debian package")
	p := debianPackage{Component: Component{Name: "x"}, sums: map[string]string{name: "0"}}
	testkit.Fails(t, p.check(name), "apt-get install --reinstall x")
}

func TestRootfsAdd(t *testing.T) {
	file := func(path string) File { return File{Path: path, Mode: 0o644, Data: []byte("a")} }
	for name, c := range map[string]struct {
		add  []File
		want string // part of the error
	}{
		"twice":         {[]File{file("/a/b"), file("/a/b")}, ""},
		"two":           {[]File{file("/a/b"), file("/a/c")}, ""},
		"different":     {[]File{file("/a"), {Path: "/a", Mode: 0o755}}, "differs"},
		"relative":      {[]File{file("a")}, "not a clean absolute path"},
		"not clean":     {[]File{file("/a/../b")}, "not a clean absolute path"},
		"root":          {[]File{file("/")}, "not a clean absolute path"},
		"below a file":  {[]File{file("/a"), file("/a/b")}, "/a is not a directory"},
		"device":        {[]File{{Path: "/a", Mode: fs.ModeDevice}}, "only plain files"},
		"set user ID":   {[]File{{Path: "/a", Mode: fs.ModeSetuid | 0o755}}, "only plain files"},
		"over a folder": {[]File{file("/a/b"), file("/a")}, "differs"},
	} {
		var r Rootfs
		var err error
		for _, f := range c.add {
			if err = r.Add(f); err != nil {
				break
			}
		}
		if c.want == "" {
			testkit.Check(testkit.In(t, name), err)
		} else {
			testkit.Fails(testkit.In(t, name), err, c.want)
		}
	}
}

func sample(t *testing.T) *Rootfs {
	t.Helper()
	source := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(source, []byte("program"), 0o600))
	var r Rootfs
	for _, f := range []File{
		{Path: "/usr/bin/x", Mode: 0o755, Source: source},
		{Path: "/usr/bin-x", Mode: 0o644, Data: []byte("data")},
		{Path: "/bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"},
		{Path: "/tmp", Mode: fs.ModeDir | 0o700},
	} {
		testkit.Must(t, r.Add(f))
	}
	return &r
}

func TestRootfsUnpack(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	at := time.Unix(1_000_000_000, 0)
	dir := t.TempDir()
	r := sample(t)
	testkit.Must(t, r.Unpack(dir, at))
	for _, f := range r.Files() {
		info, err := os.Lstat(filepath.Join(dir, f.Path))
		testkit.Must(t, err)
		testkit.Equal(testkit.In(t, f.Path), f.Mode, info.Mode())
		if f.Mode&fs.ModeSymlink == 0 && !info.ModTime().Equal(at) {
			t.Errorf("%s: %v, want %v", f.Path, info.ModTime(), at)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "bin")); target != "usr/bin" {
		t.Errorf("bin leads to %q, %v", target, err)
	}
	if err := r.Unpack(dir, at); err == nil {
		t.Error("no complaint about a directory that is not empty")
	}
}
