// Package inputflags defines the flags that name the files of a cluster, and reads that
// cluster.
package inputflags

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/render"
)

// Flags name the files of a cluster.
type Flags struct {
	input.Files
	Version, Release string
	// OS is set by the commands that write for an operating system.
	OS string
}

// Title is the title of the flags in help.
const Title = "Input flags"

// Names are the names of the flags.
var Names = []string{"config", "agent-config", "cluster-ingress", "fleet", "openshift-version", "release-info"}

func (f *Flags) Add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.Config, "config", "c", "", "VIPConfig `file` (default: vipgen.yaml next to the install-config)")
	flags.StringVar(&f.AgentConfig, "agent-config", "", "agent-config `file` (default: agent-config.yaml next to the install-config)")
	flags.StringVar(&f.ClusterIngress, "cluster-ingress", "", "`file` with the cluster's Ingress object, for its domains (default: cluster-ingress-02-config.yml next to the install-config)")
	flags.StringVar(&f.Fleet, "fleet", "", "VIPConfig `file` with defaults that clusters share (default: the nearest fleet.yaml, next to the install-config or above)")
	flags.StringVar(&f.Version, "openshift-version", "", "OpenShift `version` to render for, "+Versions()+" (default: that of vipgen.yaml; without one, output that all of them can read)")
	flags.StringVar(&f.Release, "release-info", "", "`file` with the output of 'oc adm release info -o json', for images and version")
	command.GroupFlags(flags, Title, Names...)
	for _, name := range Names[:4] {
		_ = c.MarkFlagFilename(name, "yaml", "yml")
	}
	_ = c.MarkFlagFilename("release-info", "json")
	command.Complete(c, "openshift-version", ignition.SupportedOpenShift()...)
}

// Versions lists the supported OpenShift versions.
func Versions() string {
	known := ignition.SupportedOpenShift()
	return known[0] + " to " + known[len(known)-1]
}

// CompleteYAML completes the name of an install-config.
func CompleteYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// OnCluster makes c a command that works on a cluster: its only argument is the install-config.
func OnCluster(c *cobra.Command, run func(c *cobra.Command, installConfig string) error) {
	c.Args, c.ValidArgsFunction = command.Args(0, 1), CompleteYAML
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, Arg(args)) }
}

// Arg returns the install-config that a command works on.
func Arg(args []string) string {
	if len(args) == 0 {
		return input.InstallConfigName
	}
	return args[0]
}

// Options parses the flags about a cluster.
func (f *Flags) Options(r *input.Reader) (render.Options, error) {
	o := render.Options{OpenShiftVersion: f.Version, OS: f.OS}
	if f.Release == "" {
		return o, nil
	}
	data, err := r.File(f.Release)
	if err != nil {
		return o, err
	}
	o.Release, err = render.ReadRelease(data)
	if err != nil {
		return o, problem.List{{File: f.Release, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "the output of 'oc adm release info -o json'"}}
	}
	return o, nil
}

// Given reads the files of a cluster and the flags about it.
func (f *Flags) Given(r *input.Reader, installConfig string) (render.Sources, render.Options, error) {
	o, err := f.Options(r)
	if err != nil {
		return render.Sources{}, o, err
	}
	sources, err := r.Sources(installConfig, f.Files)
	return sources, o, err
}

// Cluster reads and resolves a cluster. The list holds warnings too; it is also the error when
// it holds one.
func (f *Flags) Cluster(r *input.Reader, installConfig string) (*render.Cluster, problem.List, error) {
	sources, o, err := f.Given(r, installConfig)
	if err != nil {
		return nil, nil, err
	}
	return render.Load(sources, o)
}

// Warned is Cluster with its warnings reported.
func (f *Flags) Warned(r *input.Reader, console *command.Console, installConfig string) (*render.Cluster, error) {
	c, list, err := f.Cluster(r, installConfig)
	if err != nil {
		return nil, err
	}
	console.Report(list)
	return c, nil
}
