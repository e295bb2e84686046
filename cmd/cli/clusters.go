package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render/gitops"
)

// Names of the input files of a cluster and of a fleet.
const (
	installConfigName = "install-config.yaml"
	vipConfigName     = "vipgen.yaml"
	agentConfigName   = "agent-config.yaml"
	// clusterIngressName is what the installer calls it.
	clusterIngressName = "cluster-ingress-02-config.yml"
	fleetName          = "fleet.yaml"
)

// member is one cluster of those that a command works on.
type member struct {
	// config is the path of its install-config or of the file with its object, or "-";
	// of several objects in a file, the path, "#" and the cluster's name.
	config string
	// name is the folder that its output has among those of the fleet, with
	// slashes.
	name string
}

// roster is what a command works on.
type roster struct {
	members []member
	// fleet says that there may be several, however many there are: a folder of
	// clusters, a pattern, or several files.
	fleet bool
	// whole is the folder that holds the whole fleet, "" where only some of it
	// was named.
	whole string
}

// members is findMembers with its complaints about the command line.
func members(c *cobra.Command, args []string) (roster, error) {
	r, err := findMembers(args)
	var list problem.List
	if err == nil || errors.As(err, &list) {
		return r, err
	}
	return r, command.Usage(c, err)
}

// findMembers finds the install-configs that arguments name: files, folders
// with one, folders of such folders, patterns as of path.Match. They come in
// the order of their paths, each once.
func findMembers(args []string) (roster, error) {
	if len(args) == 0 {
		args = []string{installConfigName}
	}
	r := roster{fleet: len(args) > 1}
	for _, arg := range args {
		if err := r.add(arg); err != nil {
			return roster{}, err
		}
	}
	slices.SortFunc(r.members, func(a, b member) int { return strings.Compare(a.config, b.config) })
	r.members = slices.CompactFunc(r.members, func(a, b member) bool { return a.config == b.config })
	if len(args) > 1 {
		r.whole = ""
	}
	if !r.fleet {
		return r, nil
	}
	return r, r.check()
}

// check refuses what cannot be told apart in the output of a fleet.
func (r *roster) check() error {
	seen := map[string]string{}
	for _, m := range r.members {
		if m.config == "-" {
			return fmt.Errorf("standard input holds one cluster: give it alone")
		}
		if first, ok := seen[m.name]; ok {
			return fmt.Errorf("%s and %s would both be called %q: give the folder that holds both", first, m.config, m.name)
		}
		seen[m.name] = m.config
	}
	return nil
}

func (r *roster) add(arg string) error {
	if arg == "-" {
		r.members = append(r.members, member{config: arg})
		return nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		if isFile(filepath.Join(arg, installConfigName)) {
			r.members = append(r.members, named(filepath.Join(arg, installConfigName), filepath.Dir(filepath.Clean(arg))))
			return nil
		}
		r.fleet, r.whole = true, filepath.Clean(arg)
		return r.walk(arg, arg)
	case err != nil && strings.ContainsAny(arg, `*?[`):
		return r.glob(arg)
	}
	// A file, or one that reading will complain about. Of several that a shell
	// made of a pattern, those that stand beside an install-config are none.
	data := []byte(nil)
	if err == nil && isYAML(arg) {
		data = peek(arg)
	}
	if err == nil && r.fleet && (besides(arg) || gitops.IsOther(data)) {
		return nil
	}
	if gitops.HasCluster(data) {
		found := objects(filepath.Clean(arg), filepath.Dir(filepath.Clean(arg)), data)
		r.members = append(r.members, found...)
		r.fleet = r.fleet || len(found) > 1
		return nil
	}
	base := filepath.Dir(filepath.Clean(arg))
	if filepath.Base(arg) == installConfigName {
		base = filepath.Dir(base)
	}
	r.members = append(r.members, named(filepath.Clean(arg), base))
	return nil
}

// glob adds what a pattern matches, folders with all below them.
func (r *roster) glob(pattern string) error {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("%q: not a pattern: %w", pattern, err)
	}
	r.fleet = true
	base := pattern
	for strings.ContainsAny(base, `*?[`) {
		base = filepath.Dir(base)
	}
	before := len(r.members)
	for _, name := range matches {
		if strings.HasPrefix(filepath.Base(name), ".") && !strings.HasPrefix(filepath.Base(pattern), ".") {
			continue // as a shell does
		}
		switch info, err := os.Stat(name); {
		case err != nil:
			return err
		case info.IsDir():
			if err := r.walk(name, base); err != nil && len(matches) == 1 {
				return err
			}
		case !besides(name):
			r.members = append(r.members, inFile(name, base)...)
		}
	}
	if len(r.members) == before {
		return unreadable(pattern, errors.New("no install-config there"))
	}
	return nil
}

// inFile are the clusters that a file which a pattern matches describes: none where
// it holds other objects.
func inFile(name, base string) []member {
	if isYAML(name) {
		switch data := peek(name); {
		case gitops.HasCluster(data):
			return objects(name, base, data)
		case gitops.IsOther(data):
			return nil
		}
	}
	return []member{named(name, base)}
}

// mostEntries bounds the search below a folder: a fleet has some files for each cluster,
// and what vipgen wrote does not count.
const mostEntries = 200_000

// walk adds every install-config, and every object that describes a cluster, below a
// folder but those in hidden folders and in ones that vipgen wrote.
func (r *roster) walk(dir, base string) error {
	if abs, err := filepath.Abs(dir); err == nil && filepath.Dir(abs) == abs {
		return fmt.Errorf("%s is a whole file system: name the folder that holds the clusters", dir)
	}
	before, seen := len(r.members), 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch seen++; {
		case err != nil:
			return unreadable(p, err)
		case seen > mostEntries:
			return unreadable(dir, fmt.Errorf("more than %s files and folders: name the folder that holds the clusters", grouped(mostEntries)))
		case d.IsDir() && p != dir && (strings.HasPrefix(d.Name(), ".") || isFile(filepath.Join(p, tree.Record))):
			return fs.SkipDir
		case !d.IsDir() && d.Name() == installConfigName:
			r.members = append(r.members, named(filepath.Clean(p), base))
		case !d.IsDir() && isYAML(p) && !besides(p):
			if data := peek(p); gitops.HasCluster(data) {
				r.members = append(r.members, objects(filepath.Clean(p), base, data)...)
			}
		}
		return nil
	})
	if err == nil && len(r.members) == before {
		err = unreadable(dir, fmt.Errorf("no %s there or below, and no object that describes a cluster", installConfigName))
	}
	return err
}

// named gives a member the path of its folder below base; an install-config of
// another name has that instead.
func named(config, base string) member {
	name := filepath.Dir(config)
	if filepath.Base(config) != installConfigName {
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
	return member{config: config, name: filepath.ToSlash(name)}
}

// besides says whether a file is one of those that stand beside an
// install-config.
func besides(name string) bool {
	switch filepath.Base(name) {
	case vipConfigName, agentConfigName, clusterIngressName, fleetName:
		return true
	}
	return false
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
