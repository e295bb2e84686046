package image

import (
	"path"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// daemonConfig is the configuration of the daemons' images. They cannot run as its user: pods
// set the one they need, and one that forgets to fails in tests.
var daemonConfig = v1.Config{User: "65532:65532", Env: []string{searchPath}}

// Daemons builds the images of the daemons, for tests, under the given names. The agent's is
// vipgen's own: see Vipgen.
func Daemons(names v1alpha1.Images, coredns string, at time.Time) ([]*Image, error) {
	keepalived, err := Debian(names.Keepalived, at, "/usr/sbin/keepalived")
	if err != nil {
		return nil, err
	}
	haproxy, err := Debian(names.HAProxy, at, "/usr/sbin/haproxy")
	if err != nil {
		return nil, err
	}
	dns, err := Program(names.CoreDNS, coredns, at)
	return []*Image{keepalived, haproxy, dns}, err
}

// Debian builds an image for tests from programs of installed Debian packages, for this
// machine's platform. Programs are paths on this machine and in the image. It replaces an image
// of OpenShift's that is not available without a registry: the same daemon, with less around
// it, not even a shell.
func Debian(name string, at time.Time, programs ...string) (*Image, error) {
	c := Content{Platform: Here()}
	components, err := debianPrograms(&c.Rootfs, programs...)
	if err != nil {
		return nil, err
	}
	title := path.Base(programs[0])
	if err := c.addBill(container, title, "", bomPath(title), components, at); err != nil {
		return nil, err
	}
	return &Image{Name: name, Config: daemonConfig, Contents: []Content{c}, Time: at}, nil
}

// Program builds an image for tests with a program that was built on this machine, in /usr/bin,
// and Debian's C library if it was built with cgo.
func Program(name, program string, at time.Time) (*Image, error) {
	title := filepath.Base(program)
	inside := "/usr/bin/" + title
	c := Content{Platform: Here()}
	if err := c.Rootfs.Add(File{Path: inside, Mode: 0o755, Source: program}); err != nil {
		return nil, err
	}
	unknown := func(string) string { return "" }
	components, err := goComponents(map[string]string{inside: program}, "", unknown)
	if err != nil {
		return nil, err
	}
	needed, err := libraries(program)
	if err != nil {
		return nil, err
	}
	packages, err := debianFiles(&c.Rootfs, needed...)
	if err != nil {
		return nil, err
	}
	components = append(components, packages...)
	if err := c.addBill(container, title, "", bomPath(title), components, at); err != nil {
		return nil, err
	}
	return &Image{Name: name, Config: daemonConfig, Contents: []Content{c}, Time: at}, nil
}

// Here returns the platform of this machine.
func Here() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

func bomPath(name string) string { return path.Join("/usr/share/doc", name, "sbom.spdx.json") }
