package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/input"
)

// side is one of the two sides of a comparison: files by path, with slashes.
type side interface {
	list() ([]string, error)
	read(name string) ([]byte, error)
	close() error
}

// openSide opens a file, a folder, standard input, or a path in a Git revision.
func (a *app) openSide(arg string) (side, error) {
	if arg == "-" {
		return fileSide{a, arg}, nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return dirSide{arg}, nil
	case err == nil:
		return fileSide{a, arg}, nil
	}
	if _, _, ok := strings.Cut(arg, ":"); ok && errors.Is(err, fs.ErrNotExist) {
		return openRevision(arg)
	}
	return nil, input.Unreadable(arg, err)
}

type fileSide struct {
	*app
	name string
}

func (f fileSide) list() ([]string, error) {
	if f.name == "-" {
		return []string{"stdin.yaml"}, nil
	}
	return []string{path.Base(filepath.ToSlash(f.name))}, nil
}

func (f fileSide) read(string) ([]byte, error) { return f.File(f.name) }
func (f fileSide) close() error                { return nil }

// dirSide is a folder, recursively, without hidden files.
type dirSide struct{ root string }

func (d dirSide) list() ([]string, error) {
	var out []string
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != d.root && strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		rel, err := filepath.Rel(d.root, p)
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, input.Unreadable(d.root, err)
	}
	return out, nil
}

func (d dirSide) read(name string) ([]byte, error) {
	return input.ReadFile(filepath.Join(d.root, filepath.FromSlash(name)))
}

func (d dirSide) close() error { return nil }

// inventory lists the files of a side by cluster, and the clusters with a tree as vipgen writes
// it.
type inventory struct {
	side
	arg     string
	files   map[string][]string // relative to the cluster
	inTrees map[string]bool
}

func (a *app) readInventory(arg string) (*inventory, error) {
	s, err := a.openSide(arg)
	if err != nil {
		return nil, err
	}
	names, err := s.list()
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	inv := &inventory{side: s, arg: arg, files: map[string][]string{}, inTrees: map[string]bool{}}
	slices.Sort(names)
	for _, name := range names {
		if !diff.Relevant(name) {
			continue
		}
		cluster, file := diff.Place(name)
		inv.files[cluster] = append(inv.files[cluster], file)
		if strings.Contains(file, "/") {
			inv.inTrees[cluster] = true
		}
	}
	return inv, nil
}

// only returns the only cluster of a side.
func (i *inventory) only() (string, bool) {
	if len(i.inTrees) == 1 {
		return slices.Collect(maps.Keys(i.inTrees))[0], true
	}
	if len(i.inTrees) == 0 && len(i.files) == 1 {
		return slices.Collect(maps.Keys(i.files))[0], true
	}
	return "", false
}

// holdsAny reports whether there is anything to compare: a tree of vipgen's, or a relevant file
// among others.
func (i *inventory) holdsAny() (bool, error) {
	if len(i.inTrees) > 0 || i.arg == "-" {
		return true, nil
	}
	for cluster := range i.files {
		files, err := i.load(cluster)
		if err != nil {
			return false, err
		}
		c, err := i.decode(cluster, files)
		if err != nil || !c.Empty() {
			return err == nil, err
		}
	}
	return false, nil
}

func (i *inventory) emptyProblem() error {
	return problem.List{{File: i.arg, Severity: problem.Error, Code: problem.MissingField, Found: "nothing to compare",
		Expected: "MachineConfigs, Ignition configs or manifests", Hint: "'vipgen render' makes them of an install-config"}}
}

func (i *inventory) load(cluster string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, file := range i.files[cluster] {
		data, err := i.read(path.Join(cluster, file))
		if err != nil {
			return nil, err
		}
		out[file] = data
	}
	return out, nil
}

func (i *inventory) decode(cluster string, files map[string][]byte) (*diff.Cluster, error) {
	c := &diff.Cluster{}
	for _, file := range i.files[cluster] {
		if err := c.Add(file, files[file]); err != nil {
			return nil, problem.List{{File: i.arg, Severity: problem.Error, Code: problem.Syntax, Found: path.Join(cluster, "") + ": " + err.Error(), Expected: "a MachineConfig or an Ignition config"}}
		}
	}
	return c, nil
}
