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

// modules reads which Go modules a program is made of from the program itself:
// its main module, its dependencies and the standard library.
func modules(program string) (main debug.Module, deps []debug.Module, err error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return main, nil, fmt.Errorf("%s: %w", program, err)
	}
	main = info.Main
	if main.Path == "" { // a tool of a module of its own: its path is all there is
		main.Path = info.Path
	}
	for _, d := range info.Deps {
		// Else a module of the same checkout, which is replaced by its folder.
		if d.Replace != nil && !strings.HasPrefix(d.Replace.Path, ".") {
			d = d.Replace
		}
		deps = append(deps, *d)
	}
	std := debug.Module{Path: stdlib, Version: strings.TrimPrefix(info.GoVersion, "go")}
	return main, append(deps, std), nil
}

// stdlib is how package URLs call Go's standard library.
const stdlib = "stdlib"

// goComponents are the modules that programs, by their paths in the image, are
// made of. The main module owns the program and depends on the others. Version is
// that of a main module that does not know its own; license says what is known of
// a module's.
func goComponents(files map[string]string, version string, license func(path string) string) ([]Component, error) {
	all := map[string]Component{}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		main, deps, err := modules(files[inside])
		if err != nil {
			return nil, err
		}
		main = ofCheckout(main, version)
		owner := goComponent(main, license)
		if known, ok := all[owner.PURL]; ok {
			owner = known
		}
		owner.Files = append(owner.Files, inside)
		for _, d := range deps {
			c := goComponent(ofCheckout(d, version), license)
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

// ofCheckout gives modules that are built from a checkout its version.
func ofCheckout(m debug.Module, version string) debug.Module {
	if m.Version == "" || m.Version == "(devel)" || m.Path == modulePath {
		m.Version = version
	}
	return m
}

func goComponent(m debug.Module, license func(path string) string) Component {
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimPrefix(path.Dir(m.Path), "."), path.Base(m.Path), m.Version, nil, "")
	return Component{PURL: purl.String(), Name: m.Path, Version: m.Version, License: license(m.Path)}
}
