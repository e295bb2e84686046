package input

import (
	"os"
	"path/filepath"

	"github.com/vipgen/vipgen/render"
)

// findDefaults returns the defaults in the named file, or those of the nearest fleet.yaml in the
// folder of the install-config and its parents, or nil. The search ends at the folder of a Git
// repository.
func findDefaults(installConfig, named string) (*render.Defaults, error) {
	if named == "" && installConfig != "-" {
		named = fleetAbove(filepath.Dir(installConfig))
	}
	if named == "" {
		return nil, nil
	}
	data, err := ReadFile(named)
	if err != nil {
		return nil, err
	}
	return render.ReadDefaults(render.File{Name: named, Data: data})
}

// fleetAbove returns the nearest fleet.yaml, or "".
func fleetAbove(dir string) string {
	for {
		if name := filepath.Join(dir, FleetName); IsFile(name) {
			return name
		}
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		up := parent(dir)
		if err == nil || up == dir {
			return ""
		}
		dir = up
	}
}

// parent returns the parent folder in the user's form: "..", not an absolute path, above ".".
func parent(dir string) string {
	if base := filepath.Base(dir); base != "." && base != ".." {
		return filepath.Dir(dir)
	}
	if abs, err := filepath.Abs(dir); err != nil || filepath.Dir(abs) == abs {
		return dir
	}
	return filepath.Join(dir, "..")
}
