package host

import (
	"io/fs"
	"os"
	"path/filepath"
)

// UnitDir is where systemd units are.
const UnitDir = "/etc/systemd/system"

// Install copies a tree of files to the host, such as what `vipgen render
// --format files` made for its pool, as Ignition or the machine config daemon do.
func (h *Host) Install(tree string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return h.Write(inside, data)
	})
}
