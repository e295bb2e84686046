package cli

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// inputFlags name the files of a cluster.
type inputFlags struct {
	input.Files
	version, release string
	// os is set by the commands that write for one.
	os string
}

// inputTitle is the title of the input flags in help.
const inputTitle = "Input flags"

func (f *inputFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.Config, "config", "c", "", "VIPConfig `file` (default: vipgen.yaml next to the install-config)")
	flags.StringVar(&f.AgentConfig, "agent-config", "", "agent-config `file` (default: agent-config.yaml next to the install-config)")
	flags.StringVar(&f.ClusterIngress, "cluster-ingress", "", "`file` with the cluster's Ingress object, for its domains (default: cluster-ingress-02-config.yml next to the install-config)")
	flags.StringVar(&f.Fleet, "fleet", "", "VIPConfig `file` with defaults that clusters share (default: the nearest fleet.yaml, next to the install-config or above)")
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

// onCluster makes c a command that works on a cluster: its only argument is the
// install-config.
func onCluster(c *cobra.Command, run func(c *cobra.Command, installConfig string) error) {
	c.Args, c.ValidArgsFunction = command.Args(0, 1), completeYAML
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, installConfigArg(args)) }
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
func nodesOf(c *render.Cluster) []string {
	return lists.Map(c.Config.Spec.Peers, func(p v1alpha1.Peer) string { return p.Name })
}

// parseAll parses the values of a flag that may be repeated.
func parseAll[T any](values []string, parse func(string) (T, error)) (out []T, err error) {
	for _, s := range values {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parsed is the value that a text stands for; of one that does not, the error says what was
// expected.
func parsed[T any](parse func(string) (T, error), text, expected string, args ...any) (T, error) {
	v, err := parse(text)
	if err != nil {
		return v, fmt.Errorf(expected, args...)
	}
	return v, nil
}

// installConfigArg is the file that a command works on.
func installConfigArg(args []string) string {
	if len(args) == 0 {
		return input.InstallConfigName
	}
	return args[0]
}

// frugalLimit is what a command keeps to that reads files of many megabytes, as long as
// that is more than it needs.
const frugalLimit = 230 << 20

// frugal makes Go collect garbage earlier than by a doubled heap, until undo is called: the
// copies that readers of large files leave are most of what they take.
func frugal() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, frugalLimit))
	return func() { debug.SetMemoryLimit(before) }
}

// clusters finds the clusters that arguments name.
func clusters(c *cobra.Command, args []string) (input.Fleet, error) {
	r, err := input.Find(args)
	var list problem.List
	if err == nil || errors.As(err, &list) {
		return r, err
	}
	return r, command.Usage(c, err)
}

// eachFile hands over files one after the other, so that not all have to be kept: those
// that are named, - being standard input, and below folders those that are relevant. Their
// names are as the user knows them. An error of one below a folder is handed over with it.
func (a *app) eachFile(names []string, relevant func(name string) bool, do func(name string, inFolder bool, data []byte, err error) error) error {
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			data, err := a.File(name)
			if err == nil {
				err = do(name, false, data, nil)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return input.Unreadable(name, err)
		}
		dir := dirSide{name}
		list, err := dir.list()
		if err != nil {
			return err
		}
		for _, file := range list {
			if !relevant(file) {
				continue
			}
			data, err := dir.read(file)
			if err := do(path.Join(filepath.ToSlash(name), file), true, data, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// options reads what the flags say about a cluster.
func (a *app) options(f *inputFlags) (render.Options, error) {
	o := render.Options{OpenShiftVersion: f.version, OS: f.os}
	if f.release == "" {
		return o, nil
	}
	data, err := a.File(f.release)
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
	sources, err := a.Sources(installConfig, f.Files)
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
