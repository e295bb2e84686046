package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platforms returns the platforms that OpenShift runs on.
func Platforms() []v1.Platform {
	var out []v1.Platform
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		out = append(out, v1.Platform{OS: "linux", Architecture: arch})
	}
	return out
}

// searchPath is the PATH of programs: the agent starts daemons by name.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Paths in vipgen's image. That of the programs is fixed by the pods and units.
const (
	programDir = "/usr/bin"
	licenseDir = "/licenses"
)

// vipgenConfig is the default configuration of vipgen's own image. A test compares it with the
// Containerfile. Pods and units of nodes set command and user (root) themselves.
func vipgenConfig(version string) v1.Config {
	labels := map[string]string{
		"org.opencontainers.image.title":         "vipgen",
		"org.opencontainers.image.description":   "Virtual IPs, API load balancing and DNS for on-premises clusters: vipgen, and vipgen-agent for their nodes",
		"org.opencontainers.image.licenses":      ownLicense,
		"org.opencontainers.image.source":        "https://github.com/vipgen/vipgen",
		"org.opencontainers.image.documentation": "https://github.com/vipgen/vipgen/blob/main/docs/install.md",
		"org.opencontainers.image.version":       version,
	}
	return v1.Config{
		User:       "65532:65532", // nonroot in distroless
		Env:        []string{searchPath},
		Entrypoint: []string{programDir + "/vipgen"},
		Labels:     labels,
	}
}

// Vipgen builds vipgen's own image from a checkout. The programs are built below the directory
// work, and have to stay there until the image is written.
func Vipgen(ctx context.Context, s Source, name string, platforms []v1.Platform, at time.Time, work string) (*Image, error) {
	i := &Image{Name: name, Config: vipgenConfig(s.Version), Time: at}
	for _, p := range platforms {
		c, err := VipgenContent(ctx, s, p, at, work)
		if err != nil {
			return nil, err
		}
		i.Contents = append(i.Contents, *c)
	}
	return i, nil
}

// VipgenContent builds the content of vipgen's image for one platform.
func VipgenContent(ctx context.Context, s Source, p v1.Platform, at time.Time, work string) (*Content, error) {
	return s.content(ctx, p, place{programDir, licenseDir, bomPath("vipgen"), container}, programs, at, work)
}

// place holds the paths of programs, licences and bills in an image or an archive.
type place struct {
	programs, licenses, bill string
	what                     described
}

// content builds programs, below the directory work, and adds their licences and the bill of
// materials.
func (s Source) content(ctx context.Context, p v1.Platform, to place, names []string, at time.Time, work string) (*Content, error) {
	dir := filepath.Join(work, p.OS+"-"+p.Architecture)
	if err := s.build(ctx, p, names, dir); err != nil {
		return nil, err
	}
	c := &Content{Platform: p}
	files := map[string]string{}
	for _, name := range names {
		name = inSystem(p, name)
		file := filepath.Join(dir, name)
		if p.OS == "linux" {
			if err := checkStatic(file); err != nil {
				return nil, err
			}
		}
		inside := path.Join(to.programs, name)
		files[inside] = file
		if err := c.Rootfs.Add(File{Path: inside, Mode: 0o755, Source: file}); err != nil {
			return nil, err
		}
	}
	known, err := s.licenses(ctx, &c.Rootfs, to.licenses, files)
	if err != nil {
		return nil, err
	}
	known[modulePath], known[modulePath+"/"+labModule] = ownLicense, ownLicense
	components, err := goComponents(files, s.Version, func(module string) string { return known[module] })
	if err != nil {
		return nil, err
	}
	return c, c.addBill(to.what, "vipgen", s.Version, to.bill, components, at)
}

// licenses adds those of the programs' modules and of Go itself, below dir.
func (s Source) licenses(ctx context.Context, r *Rootfs, dir string, files map[string]string) (map[string]string, error) {
	sources := map[string]string{}
	paths := map[string]map[string]bool{} // by the module of the program
	for inside, file := range files {
		_, deps, err := modules(file)
		if err != nil {
			return nil, err
		}
		module := moduleOf(path.Base(inside))
		if paths[module] == nil {
			paths[module] = map[string]bool{modulePath: true}
		}
		for _, d := range deps {
			paths[module][d.Path] = true
		}
		delete(paths[module], stdlib)
	}
	for _, module := range slices.Sorted(maps.Keys(paths)) {
		dirs, err := s.moduleDirs(ctx, module, slices.Sorted(maps.Keys(paths[module])))
		if err != nil {
			return nil, err
		}
		for path, dir := range dirs {
			if sources[path] == "" {
				sources[path] = dir
			}
		}
	}
	var err error
	if sources[stdlib], err = s.goRoot(ctx); err != nil {
		return nil, err
	}
	return licenses(r, dir, sources)
}

// addBill adds the bill of materials to the files.
func (c *Content) addBill(what described, name, version, at string, components []Component, made time.Time) error {
	text, err := bill(what, name, version, c.Platform, &c.Rootfs, components, made)
	if err != nil {
		return err
	}
	c.SBOM = text
	return c.Rootfs.Add(File{Path: at, Mode: 0o644, Data: text})
}

// checkStatic rejects a program that needs a loader: there is none in the image.
func checkStatic(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New(file + " is not static; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
