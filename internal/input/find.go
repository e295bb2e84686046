package input

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render/gitops"
)

// Names of the input files of a cluster and of a fleet.
const (
	InstallConfigName = "install-config.yaml"
	VIPConfigName     = "vipgen.yaml"
	AgentConfigName   = "agent-config.yaml"
	// ClusterIngressName is the installer's name for it.
	ClusterIngressName = "cluster-ingress-02-config.yml"
	FleetName          = "fleet.yaml"
)

// Cluster is a cluster among a command's arguments.
type Cluster struct {
	// Config is the path of its install-config or of the file with its object, or "-"; of
	// several objects in a file, the path, "#" and the cluster's name.
	Config string
	// Name is the folder of its output within the fleet's, with slashes.
	Name string
}

// Fleet holds the clusters of arguments.
type Fleet struct {
	Clusters []Cluster
	// Several is set where there may be several: for a folder of clusters, a pattern, or
	// several files.
	Several bool
	// Whole is the folder of the whole fleet, "" where only a part was named.
	Whole string
	// others are found files without a cluster.
	others others
}

// Find finds the install-configs of arguments: files, folders with one, folders of such
// folders, patterns as in path.Match. They are sorted by path, without duplicates. An error
// that is no problem.List is about the arguments.
func Find(args []string) (Fleet, error) {
	if len(args) == 0 {
		args = []string{InstallConfigName}
	}
	r := Fleet{Several: len(args) > 1}
	for _, arg := range args {
		if err := r.add(arg); err != nil {
			return Fleet{}, err
		}
	}
	if len(r.Clusters) == 0 {
		return Fleet{}, noClusterError(r.others, args[0], errors.New("no install-config"))
	}
	slices.SortFunc(r.Clusters, func(a, b Cluster) int { return strings.Compare(a.Config, b.Config) })
	r.Clusters = slices.CompactFunc(r.Clusters, func(a, b Cluster) bool { return a.Config == b.Config })
	if len(args) > 1 {
		r.Whole = ""
	}
	if !r.Several {
		return r, nil
	}
	return r, r.check()
}

// check rejects clusters with the same name in the output of a fleet.
func (r *Fleet) check() error {
	seen := map[string]string{}
	for _, m := range r.Clusters {
		if m.Config == "-" {
			return fmt.Errorf("standard input holds one cluster: give it alone")
		}
		if first, ok := seen[m.Name]; ok {
			return fmt.Errorf("%s and %s would both be called %q: give the folder that holds both", first, m.Config, m.Name)
		}
		seen[m.Name] = m.Config
	}
	return nil
}

func (r *Fleet) add(arg string) error {
	if arg == "-" {
		r.Clusters = append(r.Clusters, Cluster{Config: arg})
		return nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		if IsFile(filepath.Join(arg, InstallConfigName)) {
			r.Clusters = append(r.Clusters, named(filepath.Join(arg, InstallConfigName), filepath.Dir(filepath.Clean(arg))))
			return nil
		}
		r.Several, r.Whole = true, filepath.Clean(arg)
		return r.walk(arg, arg)
	case err != nil && strings.ContainsAny(arg, `*?[`):
		return r.glob(arg)
	}
	// A file, or an argument whose reading fails. In a shell's expansion, files next to an
	// install-config are skipped.
	data := []byte(nil)
	if err == nil && isYAML(arg) {
		data = peek(arg)
	}
	if err == nil && r.Several && (isCompanionFile(arg) || gitops.IsOther(data)) {
		r.others.add(filepath.Clean(arg), data)
		return nil
	}
	if gitops.HasCluster(data) {
		found := r.objects(filepath.Clean(arg), filepath.Dir(filepath.Clean(arg)), data)
		r.Clusters = append(r.Clusters, found...)
		r.Several = r.Several || len(found) > 1
		return nil
	}
	base := filepath.Dir(filepath.Clean(arg))
	if filepath.Base(arg) == InstallConfigName {
		base = filepath.Dir(base)
	}
	r.Clusters = append(r.Clusters, named(filepath.Clean(arg), base))
	return nil
}

// glob adds the matches of a pattern, folders recursively.
func (r *Fleet) glob(pattern string) error {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("%q: not a pattern: %w", pattern, err)
	}
	r.Several = true
	base := pattern
	for strings.ContainsAny(base, `*?[`) {
		base = filepath.Dir(base)
	}
	before := len(r.Clusters)
	for _, name := range matches {
		if strings.HasPrefix(filepath.Base(name), ".") && !strings.HasPrefix(filepath.Base(pattern), ".") {
			continue // as in a shell
		}
		switch info, err := os.Stat(name); {
		case err != nil:
			return err
		case info.IsDir():
			if err := r.walk(name, base); err != nil && len(matches) == 1 {
				return err
			}
		case !isCompanionFile(name):
			r.Clusters = append(r.Clusters, r.inFile(name, base)...)
		}
	}
	if len(r.Clusters) == before {
		return noClusterError(r.others, pattern, errors.New("no install-config there"))
	}
	return nil
}

// noClusterError reports arguments without a cluster: with advice by the objects found, or with
// an error.
func noClusterError(o others, name string, err error) error {
	if list := o.instead(); list != nil {
		return list
	}
	return Unreadable(name, err)
}

// inFile returns the clusters of a file that matches a pattern: none where it holds other
// objects.
func (r *Fleet) inFile(name, base string) []Cluster {
	if isYAML(name) {
		switch data := peek(name); {
		case gitops.HasCluster(data):
			return r.objects(name, base, data)
		case gitops.IsOther(data):
			r.others.add(name, data)
			return nil
		}
	}
	return []Cluster{named(name, base)}
}

// mostEntries bounds the search below a folder: a fleet has some files for each cluster, and
// vipgen's output does not count.
const mostEntries = 200_000

// walk adds every install-config, and every object that describes a cluster, below a folder,
// without hidden folders and vipgen's output.
func (r *Fleet) walk(dir, base string) error {
	if abs, err := filepath.Abs(dir); err == nil && filepath.Dir(abs) == abs {
		return fmt.Errorf("%s is a whole file system: name the folder that holds the clusters", dir)
	}
	before, seen := len(r.Clusters), 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch seen++; {
		case err != nil:
			return Unreadable(p, err)
		case seen > mostEntries:
			return Unreadable(dir, fmt.Errorf("more than %d files and folders: name the folder that holds the clusters", mostEntries))
		case d.IsDir() && p != dir && (strings.HasPrefix(d.Name(), ".") || IsFile(filepath.Join(p, tree.Record))):
			return fs.SkipDir
		case !d.IsDir() && d.Name() == InstallConfigName:
			r.Clusters = append(r.Clusters, named(filepath.Clean(p), base))
		case !d.IsDir() && isYAML(p) && !(isCompanionFile(p) && len(r.Clusters) > before):
			switch data := peek(p); {
			case gitops.HasCluster(data) && !isCompanionFile(p):
				r.Clusters = append(r.Clusters, r.objects(filepath.Clean(p), base, data)...)
			case len(r.Clusters) == before:
				r.others.add(filepath.Clean(p), data)
			}
		}
		return nil
	})
	if err == nil && len(r.Clusters) == before {
		err = noClusterError(r.others, dir, fmt.Errorf("no %s there or below, and no object that describes a cluster", InstallConfigName))
	}
	return err
}

// named returns a Cluster named after its folder below base; an install-config with another
// name is named after that.
func named(config, base string) Cluster {
	name := filepath.Dir(config)
	if filepath.Base(config) != InstallConfigName {
		name = strings.TrimSuffix(config, filepath.Ext(config))
	}
	if rel, err := filepath.Rel(base, name); err == nil {
		name = rel
	}
	if !filepath.IsLocal(name) || name == "." {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
		name = filepath.Base(name)
	}
	return Cluster{Config: config, Name: filepath.ToSlash(name)}
}

func isCompanionFile(name string) bool {
	switch filepath.Base(name) {
	case VIPConfigName, AgentConfigName, ClusterIngressName, FleetName:
		return true
	}
	return false
}

// IsFile reports whether name is a regular file.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
