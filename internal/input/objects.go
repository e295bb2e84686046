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
	"github.com/vipgen/vipgen/internal/regular"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/source"
)

// isYAML says whether a file may hold objects.
func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// peek reads a file that may hold objects; nothing of one that cannot be read or
// is too large.
func peek(name string) []byte {
	f, err := regular.Open(regular.FS{}, name)
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

// objects are the clusters whose objects a file holds. A file that cannot be read
// counts as one, so that reading it complains; one whose objects are a part of another
// is among the others.
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

// objectName is the folder of the file below base and the name of the cluster,
// once where both are the same.
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

// SplitObject takes the name of a cluster from "FILE#NAME", unless that is a file.
func SplitObject(arg string) (file, object string) {
	at := strings.LastIndexByte(arg, '#')
	if at < 0 || IsFile(arg) {
		return arg, ""
	}
	return arg[:at], arg[at+1:]
}

// inputIn is the file in a folder that describes its cluster: the install-config, or
// the only file with objects that do. Where there is none, it is one of others, as reading
// that says what to give.
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
			return name // which of them is not known
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

// mostOthers is how many are kept: one of them is reported.
const mostOthers = 100

func (o *others) add(name string, data []byte) {
	if len(*o) < mostOthers && gitops.HasOther(data) {
		*o = append(*o, render.File{Name: name, Data: data})
	}
}

// instead returns what to give in their place; nil where nothing is known.
func (o others) instead() problem.List { return gitops.Instead(o...) }

// companions finds the files with objects that AgentClusterInstalls of a folder go
// with. It reads each folder once, and is safe for concurrent use.
type companions struct {
	mu      sync.Mutex
	folders map[string][]render.File
}

// of gives those beside a file that name the namespace or the name of one of its
// objects.
func (c *companions) of(file string, data []byte) []render.File {
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
