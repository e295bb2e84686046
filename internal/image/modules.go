package image

import (
	"debug/buildinfo"
	"fmt"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/package-url/packageurl-go"
)

// modules reads the Go modules of a program from its binary: main module, dependencies and the
// standard library.
func modules(program string) (main debug.Module, deps []debug.Module, err error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return main, nil, fmt.Errorf("%s: %w", program, err)
	}
	main = info.Main
	if main.Path == "" { // a tool in a module of its own: only its path is known
		main.Path = info.Path
	}
	for _, d := range info.Deps {
		// Skips modules of the same checkout, which are replaced by their folder.
		if d.Replace != nil && !strings.HasPrefix(d.Replace.Path, ".") {
			d = d.Replace
		}
		deps = append(deps, *d)
	}
	std := debug.Module{Path: stdlib, Version: strings.TrimPrefix(info.GoVersion, "go")}
	return main, append(deps, std), nil
}

// stdlib is the name of Go's standard library in package URLs.
const stdlib = "stdlib"

// goComponents returns the modules of programs, by the programs' paths in the image. The main
// module owns the program and depends on the others. version is that of a main module without
// one; license returns a module's licence, if known.
func goComponents(files map[string]string, version string, license func(path string) string) ([]Component, error) {
	all := map[string]Component{}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		main, deps, err := modules(files[inside])
		if err != nil {
			return nil, err
		}
		main = withVersion(main, version)
		owner := goComponent(main, license)
		if known, ok := all[owner.PURL]; ok {
			owner = known
		}
		owner.Files = append(owner.Files, inside)
		for _, d := range deps {
			c := goComponent(withVersion(d, version), license)
			if _, ok := all[c.PURL]; !ok {
				all[c.PURL] = c
			}
			if !slices.Contains(owner.DependsOn, c.PURL) {
				owner.DependsOn = append(owner.DependsOn, c.PURL)
			}
		}
		slices.Sort(owner.DependsOn)
		all[owner.PURL] = owner
	}
	return slices.Collect(maps.Values(all)), nil
}

// withVersion returns the module, with the given version where it is built from a checkout.
func withVersion(m debug.Module, version string) debug.Module {
	if m.Version == "" || m.Version == "(devel)" || m.Path == modulePath {
		m.Version = version
	}
	return m
}

func goComponent(m debug.Module, license func(path string) string) Component {
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimPrefix(path.Dir(m.Path), "."), path.Base(m.Path), m.Version, nil, "")
	return Component{PURL: purl.String(), Name: m.Path, Version: m.Version, License: license(m.Path)}
}
