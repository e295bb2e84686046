package cli

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/render"
)

func (a *app) validateCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var strict bool
	c := &cobra.Command{
		Use:        "validate [install-config.yaml]",
		SuggestFor: []string{"check", "lint", "test"},
		Short:      "Check the input of a cluster and report every problem",
		Long: `Check install-config.yaml and, where they exist, vipgen.yaml and
agent-config.yaml next to it. Every problem is reported at once, each with file,
line, column, field and a code that does not change between releases. If there is
none, print which files were read, what the cluster will run and what
'vipgen render' would write.

Exit code 0: valid; warnings do not change it. 1: with --strict, valid with warnings.
2: there are errors. 3: a file cannot be read.`,
		Example: `  vipgen validate install-config.yaml

  # In CI
  vipgen validate --strict install-config.yaml

  vipgen validate -o json install-config.yaml | jq '.problems[].code'`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		v, err := a.validate(installConfig, &f, o)
		return found(err, strict && len(v.Problems) > 0)
	})
	f.Add(c)
	c.Flags().BoolVar(&strict, "strict", false, "exit code 1 if there are warnings")
	o.Add(c, "text", "json")
	return c
}

// validation is what validate found.
type validation struct {
	Valid    bool         `json:"valid"`
	Problems problem.List `json:"problems"`
	// Files are those that were read.
	Files []string `json:"files"`
}

func (a *app) validate(installConfig string, f *inputflags.Flags, o command.Format) (*validation, error) {
	v := &validation{Problems: problem.List{}, Files: []string{}}
	cluster, err := a.validated(installConfig, f, v)
	var found problem.List
	switch {
	case errors.As(err, &found):
		v.Problems = append(v.Problems, found...)
	case err != nil:
		return v, err
	}
	v.Valid = err == nil
	switch {
	case o == "json":
		if err := command.JSON(a.Out, v); err != nil || v.Valid {
			return v, err
		}
		return v, command.Code(command.ExitOf(v.Problems))
	case !v.Valid:
		return v, v.Problems
	}
	a.Report(v.Problems)
	made, err := produces(cluster)
	if err != nil {
		return v, err
	}
	warnings := ""
	if n := len(v.Problems); n > 0 {
		warnings = ", " + command.Plural(n, "warning")
	}
	for i, name := range v.Files {
		if name == "-" {
			v.Files[i] = "standard input"
		}
	}
	_, err = fmt.Fprintf(a.Out, "%s: valid%s\nRead: %s\n%s\n%sRenders: %s\n",
		command.SafeLine(v.Files[0]), warnings, command.SafeLine(strings.Join(v.Files, ", ")), unread(installConfig, v.Files), describe(cluster), made)
	return v, err
}

// validated reads and resolves a cluster, and notes what was read. What is wrong is in the
// error, warnings of a cluster without errors in v.
func (a *app) validated(installConfig string, f *inputflags.Flags, v *validation) (*render.Cluster, error) {
	sources, o, err := f.Given(&a.Reader, installConfig)
	if err != nil {
		return nil, err
	}
	v.Files = sources.Names()
	if f.Release != "" {
		v.Files = append(v.Files, f.Release)
	}
	cluster, list, err := render.Load(sources, o)
	if err == nil {
		v.Problems = append(v.Problems, list...)
		v.Problems = append(v.Problems, defaultAgent(cluster, problem.Warning, sources)...)
		v.Problems.Sort()
	}
	return cluster, err
}

// defaultAgent reports an image of the agent that no registry has, in the file that should name
// another.
func defaultAgent(c *render.Cluster, s problem.Severity, sources render.Sources) problem.List {
	list := render.DefaultAgent(c.Images, s)
	for i := range list {
		list[i].File = sources.InstallConfig.Name
		if sources.VIPConfig != nil {
			list[i].File = sources.VIPConfig.Name
		}
	}
	return list
}

// unread says which files of the working directory would be read next to an install-config
// there, but not next to standard input; those that were named were read.
func unread(installConfig string, read []string) string {
	if installConfig != "-" {
		return ""
	}
	var names []string
	for _, name := range []string{input.VIPConfigName, input.AgentConfigName, input.ClusterIngressName, input.FleetName} {
		if _, err := os.Stat(name); err == nil && !slices.Contains(read, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("Not read, as standard input has no folder: %s. Name them by flags.\n", strings.Join(names, ", "))
}

// produces says what render would write for a cluster.
func produces(c *render.Cluster) (string, error) {
	files, err := (&render.Renderer{}).Tree(c, render.Want{Formats: []render.Format{render.FormatMachineConfig, render.FormatIgnition}})
	names := map[string][]string{}
	for _, f := range files {
		folder, name := path.Split(f.Path)
		names[folder] = append(names[folder], strings.TrimSuffix(name, path.Ext(name)))
	}
	var out []string
	for _, kind := range [][2]string{{"machineconfigs/", "MachineConfigs"}, {"ignition/", "Ignition configs"}, {"manifests/", "manifests"}} {
		if list := names[kind[0]]; list != nil {
			out = append(out, kind[1]+" "+strings.Join(list, ", "))
		}
	}
	return strings.Join(out, "; "), err
}
