package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/gitops"
)

// inputFlags name the files of a cluster.
type inputFlags struct {
	config, agentConfig   string
	clusterIngress, fleet string
	version, release      string
	// os is set by the commands that write for one.
	os string
}

// inputTitle is the title of the input flags in help.
const inputTitle = "Input flags"

func (f *inputFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "VIPConfig `file` (default: vipgen.yaml next to the install-config)")
	flags.StringVar(&f.agentConfig, "agent-config", "", "agent-config `file` (default: agent-config.yaml next to the install-config)")
	flags.StringVar(&f.clusterIngress, "cluster-ingress", "", "`file` with the cluster's Ingress object, for its domains (default: cluster-ingress-02-config.yml next to the install-config)")
	flags.StringVar(&f.fleet, "fleet", "", "VIPConfig `file` with defaults that clusters share (default: the nearest fleet.yaml, next to the install-config or above)")
	flags.StringVar(&f.version, "openshift-version", "", "OpenShift `version` to render for, "+versions()+" (default: that of vipgen.yaml; without one, output that all of them can read)")
	flags.StringVar(&f.release, "release-info", "", "`file` with the output of 'oc adm release info -o json', for images and version")
	command.GroupFlags(flags, inputTitle, "config", "agent-config", "cluster-ingress", "fleet", "openshift-version", "release-info")
	for _, name := range []string{"config", "agent-config", "cluster-ingress", "fleet"} {
		_ = c.MarkFlagFilename(name, "yaml", "yml")
	}
	_ = c.MarkFlagFilename("release-info", "json")
	command.Complete(c, "openshift-version", ignition.SupportedOpenShift()...)
}

// completeYAML completes the name of an install-config.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeFrom completes a flag, also one that takes a list, with names of the cluster
// that the command line names; with the usual ones while that cannot be read.
func (a *app) completeFrom(c *cobra.Command, flag string, f *inputFlags, names func(*render.Cluster) []string, usual ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		known := usual
		if file := installConfigArg(args); file != "-" {
			if cluster, _, err := a.cluster(file, f); err == nil {
				known = names(cluster)
			}
		}
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var out []string
		for _, name := range known {
			if name = before + name; strings.HasPrefix(name, begun) {
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// rolesOf are the pools of a cluster.
func rolesOf(c *render.Cluster) []string { return c.Roles }

// nodesOf are the nodes that the input of a cluster names.
func nodesOf(c *render.Cluster) (names []string) {
	for _, p := range c.Config.Spec.Peers {
		names = append(names, p.Name)
	}
	return names
}

// Bounds of a file that is read, before anything is built of it: a tree takes many
// times its size, about 600 bytes for each value. A bootstrap.ign has some MiB and
// thousands of values, the Nodes of a cluster some hundred each.
const (
	maxInput  = 64 << 20
	maxValues = 450_000
)

// readFile reads a file, or standard input for "-".
func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		if a.inRead {
			return nil, unreadable(name, errors.New("standard input a second time"))
		}
		a.inRead = true
		return readBounded(name, a.in)
	}
	f, err := openFile(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	return readBounded(name, f)
}

// openFile refuses what may never be there to be read, such as a FIFO that nobody
// writes to. A shell's <(command) is a pipe too, under the name of a descriptor.
func openFile(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	descriptor := strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/self/fd/")
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, errors.New("a directory")
	case !mode.IsRegular() && !descriptor:
		return nil, errors.New("not a regular file; for a pipe, give - and its output as standard input")
	}
	return os.Open(name)
}

func readBounded(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		return nil, unreadable(name, err)
	case len(data) > maxInput:
		return nil, unreadable(name, fmt.Errorf("larger than %d MiB", maxInput>>20))
	case values(data) > maxValues:
		return nil, unreadable(name, fmt.Errorf("more than %d values", maxValues))
	}
	return data, nil
}

// values is how many values there are in YAML or JSON, or more: each has a line of its
// own, or comes after a comma, a bracket, a dash or a colon.
func values(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case '\n', ',', '[', '{':
			n++
		case '-', ':', '?':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

func unreadable(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return problem.List{{File: name, Severity: problem.Error, Code: problem.Unreadable, Found: err.Error(), Expected: "a file that can be read"}}
}

// installConfigArg is the file that a command works on.
func installConfigArg(args []string) string {
	if len(args) == 0 {
		return installConfigName
	}
	return args[0]
}

// sources reads the files of a cluster.
func (a *app) sources(installConfig string, f *inputFlags) (render.Sources, error) {
	installConfig, object := splitObject(installConfig)
	if info, err := os.Stat(installConfig); err == nil && info.IsDir() {
		installConfig = inputIn(installConfig)
	}
	var problems problem.List
	note := func(err error) {
		var list problem.List
		if errors.As(err, &list) {
			problems = append(problems, list...)
		}
	}
	data, err := a.readFile(installConfig)
	note(err)
	s := render.Sources{InstallConfig: render.File{Name: installConfig, Data: data}, Object: object}
	s.VIPConfig, err = a.beside(installConfig, f.config, vipConfigName)
	note(err)
	if gitops.HasCluster(data) {
		s.Companions = a.companions.of(installConfig, data)
		if f.agentConfig != "" {
			note(problem.List{{File: f.agentConfig, Severity: problem.Error, Code: problem.ConflictingFields,
				Found: "an agent-config", Expected: "none: " + installConfig + " has the nodes"}})
		}
	} else {
		s.AgentConfig, err = a.beside(installConfig, f.agentConfig, agentConfigName)
		note(err)
	}
	s.ClusterIngress, err = a.beside(installConfig, f.clusterIngress, clusterIngressName)
	note(err)
	s.Defaults, err = a.defaults.find(installConfig, f.fleet)
	note(err)
	return s, problems.Err()
}

// beside reads the named file, or the usual one beside the install-config.
func (a *app) beside(installConfig, named, usual string) (*render.File, error) {
	name := named
	if name == "" {
		if installConfig == "-" {
			return nil, nil
		}
		name = filepath.Join(filepath.Dir(installConfig), usual)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	data, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	return &render.File{Name: name, Data: data}, nil
}

// options reads what the flags say about a cluster.
func (a *app) options(f *inputFlags) (render.Options, error) {
	o := render.Options{OpenShiftVersion: f.version, OS: f.os}
	if f.release == "" {
		return o, nil
	}
	data, err := a.readFile(f.release)
	if err != nil {
		return o, err
	}
	o.Release, err = render.ReadRelease(data)
	if err != nil {
		return o, problem.List{{File: f.release, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "the output of 'oc adm release info -o json'"}}
	}
	return o, nil
}

// given reads the files of a cluster, and what the flags say about it.
func (a *app) given(installConfig string, f *inputFlags) (render.Sources, render.Options, error) {
	o, err := a.options(f)
	if err != nil {
		return render.Sources{}, o, err
	}
	sources, err := a.sources(installConfig, f)
	return sources, o, err
}

// cluster reads and resolves a cluster. Warnings are part of the list, which is
// also the error when it holds one.
func (a *app) cluster(installConfig string, f *inputFlags) (*render.Cluster, problem.List, error) {
	sources, o, err := a.given(installConfig, f)
	if err != nil {
		return nil, nil, err
	}
	return render.Load(sources, o)
}

// quietCluster is cluster with its warnings printed.
func (a *app) quietCluster(installConfig string, f *inputFlags) (*render.Cluster, error) {
	c, list, err := a.cluster(installConfig, f)
	if err != nil {
		return nil, err
	}
	a.report(list)
	return c, nil
}

// quietPlan is quietCluster for what is more than a cluster, made of its files and
// of options of its own.
func quietPlan[Options, Plan any](a *app, installConfig string, f *inputFlags, x Options,
	load func(render.Sources, render.Options, Options) (*Plan, problem.List)) (*Plan, error) {
	sources, o, err := a.given(installConfig, f)
	if err != nil {
		return nil, err
	}
	plan, list := load(sources, o, x)
	if err := list.Err(); err != nil {
		return nil, err
	}
	a.report(list)
	return plan, nil
}
