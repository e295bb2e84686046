// Package ignition translates a Bundle to the formats of operating systems and operators
// (MachineConfig, Ignition, Butane, plain files), and reads those formats back.
package ignition

import (
	"cmp"
	"fmt"
	"slices"
)

// Bundle holds the files and units of one pool's nodes.
type Bundle struct {
	// Role is the pool: bootstrap, master, worker, arbiter or a custom pool.
	Role string
	// Files and Units are sorted by path and name; see Sort.
	Files []File
	Units []Unit
}

// File is a regular file on a node, owned by root.
type File struct {
	// Path is absolute and clean.
	Path string
	// Mode holds permission bits only, such as 0o644.
	Mode int
	// Contents are the bytes of the file.
	Contents []byte
}

// Unit is a systemd unit with its drop-ins.
type Unit struct {
	Name string
	// Enabled is nil for a unit that another one starts.
	Enabled *bool
	// Contents are empty for a unit of the operating system with added drop-ins.
	Contents string
	Dropins  []Dropin
}

// Dropin is one drop-in of a unit.
type Dropin struct {
	Name     string
	Contents string
}

// Sort sorts files and units and rejects duplicate paths and names, which readers resolve
// differently.
func (b *Bundle) Sort() error {
	slices.SortFunc(b.Files, func(x, y File) int { return cmp.Compare(x.Path, y.Path) })
	slices.SortFunc(b.Units, func(x, y Unit) int { return cmp.Compare(x.Name, y.Name) })
	for i := 1; i < len(b.Files); i++ {
		if b.Files[i].Path == b.Files[i-1].Path {
			return fmt.Errorf("pool %s: file %s twice", b.Role, b.Files[i].Path)
		}
	}
	for i := 1; i < len(b.Units); i++ {
		if b.Units[i].Name == b.Units[i-1].Name {
			return fmt.Errorf("pool %s: unit %s twice", b.Role, b.Units[i].Name)
		}
	}
	return nil
}
