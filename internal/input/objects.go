package input

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/source"
)

// isYAML reports whether a file may hold objects.
func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// peek reads a file that may hold objects; nil if it is unreadable or too large.
func peek(name string) []byte {
	f, err := fileio.Open(fileio.FS{}, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, source.MaxStream+1))
	if err != nil || len(data) > source.MaxStream {
		return nil
	}
	return data
}

// objects returns the clusters of the objects in a file. An unreadable file counts as one, so
// that reading it reports the error; one with parts of other objects is among the others.
func (r *Fleet) objects(name, base string, data []byte) []Cluster {
	names, problems := gitops.Names(name, data)
	if len(problems) > 0 {
		return []Cluster{named(name, base)}
	}
	var out []Cluster
	for _, cluster := range names {
		m := Cluster{Config: name, Name: objectName(name, base, cluster)}
		if len(names) > 1 {
			m.Config += "#" + cluster
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		r.others.add(name, data)
	}
	return out
}

// objectName returns the file's folder below base with the name of the cluster, unless both are
// the same.
func objectName(file, base, cluster string) string {
	if !v1alpha1.ValidName(cluster) {
		return named(file, base).Name
	}
	dir := filepath.Dir(file)
	rel, err := filepath.Rel(base, dir)
	switch {
	case err != nil || !filepath.IsLocal(rel) || rel == ".":
		return cluster
	case filepath.Base(dir) == cluster:
		return filepath.ToSlash(rel)
	}
	return path.Join(filepath.ToSlash(rel), cluster)
}

// SplitObject splits "FILE#NAME", unless that is a file.
func SplitObject(arg string) (file, object string) {
	at := strings.LastIndexByte(arg, '#')
	if at < 0 || IsFile(arg) {
		return arg, ""
	}
	return arg[:at], arg[at+1:]
}

// inputIn returns the file in a folder that describes its cluster: the install-config, or the
// only file with objects that do. Without any, it is one of the others, as reading that gives
// advice.
func inputIn(dir string) string {
	name := filepath.Join(dir, InstallConfigName)
	if IsFile(name) {
		return name
	}
	found := ""
	var others others
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if !isYAML(file) {
			continue
		}
		if data := peek(file); !gitops.HasCluster(data) {
			others.add(file, data)
			continue
		}
		if found != "" {
			return name // ambiguous
		}
		found = file
	}
	if list := others.instead(); found == "" && list != nil {
		return list[0].File
	}
	return cmp.Or(found, name)
}

// others are files with objects of which none describes a cluster.
type others []render.File

// mostOthers bounds those that are kept: one of them is reported.
const mostOthers = 100

func (o *others) add(name string, data []byte) {
	if len(*o) < mostOthers && gitops.HasOther(data) {
		*o = append(*o, render.File{Name: name, Data: data})
	}
}

// instead returns the advice for them, or nil.
func (o others) instead() problem.List { return gitops.Instead(o...) }

// companions finds the files with objects that belong to AgentClusterInstalls of a folder. It
// reads each folder once, and is safe for concurrent use.
type companions struct {
	mu      sync.Mutex
	folders map[string][]render.File
}

// related returns the files next to a file that have the namespace or the name of one of its
// objects.
func (c *companions) related(file string, data []byte) []render.File {
	if file == "-" {
		return nil
	}
	dir := filepath.Dir(file)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.folders[dir]; !known {
		if c.folders == nil {
			c.folders = map[string][]render.File{}
		}
		c.folders[dir] = companionsIn(dir)
	}
	var out []render.File
	for _, f := range c.folders[dir] {
		if f.Name != filepath.Clean(file) && gitops.Related(data, f.Data) {
			out = append(out, f)
		}
	}
	return out
}

func companionsIn(dir string) []render.File {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []render.File
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if e.Type()&fs.ModeDir != 0 || !isYAML(name) {
			continue
		}
		if data := peek(name); gitops.HasCompanion(data) {
			out = append(out, render.File{Name: name, Data: data})
		}
	}
	return out
}
