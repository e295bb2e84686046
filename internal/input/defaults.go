package input

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/vipgen/vipgen/render"
)

// defaultsFinder finds the defaults of a cluster's fleet. It reads each file once, and is safe
// for concurrent use.
type defaultsFinder struct {
	mu     sync.Mutex
	files  map[string]*foundDefaults
	nearby map[string]string
}

type foundDefaults struct {
	defaults *render.Defaults
	err      error
}

// find returns the defaults in the named file, or those of the nearest fleet.yaml in the folder
// of the install-config and its parents, or nil. The search ends at the folder of a Git
// repository.
func (d *defaultsFinder) find(installConfig, named string) (*render.Defaults, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if named == "" {
		if installConfig == "-" {
			return nil, nil
		}
		if named = d.above(filepath.Dir(installConfig)); named == "" {
			return nil, nil
		}
	}
	if d.files == nil {
		d.files = map[string]*foundDefaults{}
	}
	if d.files[named] == nil {
		d.files[named] = readDefaults(named)
	}
	return d.files[named].defaults, d.files[named].err
}

func readDefaults(name string) *foundDefaults {
	data, err := ReadFile(name)
	if err != nil {
		return &foundDefaults{err: err}
	}
	defaults, err := render.ReadDefaults(render.File{Name: name, Data: data})
	return &foundDefaults{defaults, err}
}

// above returns the nearest fleet.yaml, or "".
func (d *defaultsFinder) above(dir string) string {
	if found, ok := d.nearby[dir]; ok {
		return found
	}
	name := filepath.Join(dir, FleetName)
	if !IsFile(name) {
		name = ""
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			if up := parent(dir); up != dir {
				name = d.above(up)
			}
		}
	}
	if d.nearby == nil {
		d.nearby = map[string]string{}
	}
	d.nearby[dir] = name
	return name
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
