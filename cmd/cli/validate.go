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
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

func (a *app) validateCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var strict bool
	c := &cobra.Command{
		Use:        "validate [install-config.yaml|DIR|PATTERN...]",
		SuggestFor: []string{"check", "lint", "test"},
		Short:      "Check the input of a cluster and report every problem",
		Long: `Check install-config.yaml and, where they exist, vipgen.yaml and
agent-config.yaml next to it. Every problem is reported at once, each with file,
line, column, field and a code that does not change between releases. If there is
none, print which files were read, what the cluster will run and what
'vipgen render' would write.

With folders of clusters or several install-configs: one verdict per cluster, and the
exit code of the worst.

Exit code 0: valid; warnings do not change it. 1: with --strict, valid with warnings.
2: there are errors. 3: a file cannot be read.`,
		Example: `  vipgen validate install-config.yaml

  # In CI, also of a repository of clusters
  vipgen validate --strict install-config.yaml
  vipgen validate --strict clusters

  vipgen validate -o json install-config.yaml | jq '.problems[].code'`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && (args[0] == "-" || input.IsFile(args[0])) {
				v, err := a.validate(inputflags.Arg(args), &f, o)
				return found(err, strict && len(v.Problems) > 0)
			}
			fleet, err := clusters(c, args)
			switch {
			case err != nil:
				return err
			case !fleet.Several:
				v, err := a.validate(fleet.Clusters[0].Config, &f, o)
				return found(err, strict && len(v.Problems) > 0)
			case f.Config != "" || f.AgentConfig != "" || f.ClusterIngress != "":
				return command.Usagef(c, "--config, --agent-config and --cluster-ingress are for one cluster: a fleet has such files next to each install-config, and --fleet")
			}
			return a.validateFleet(fleet, &f, o, strict)
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&strict, "strict", false, "exit code 1 if there are warnings")
	o.Add(c, "text", "json")
	return c
}

type validation struct {
	InstallConfig string       `json:"installConfig"`
	Valid         bool         `json:"valid"`
	Problems      problem.List `json:"problems"`
	// Files were read; NotRead were not, as standard input has no folder.
	Files   []string `json:"files"`
	NotRead []string `json:"notRead,omitempty"`
	// Cluster summarizes the cluster, and Renders lists the output of 'vipgen render'; missing
	// if there are errors.
	Cluster *clusterSummary `json:"cluster,omitempty"`
	Renders []rendered      `json:"renders,omitempty"`
}

// rendered are output files of a kind.
type rendered struct {
	Kind  string   `json:"kind"`
	Names []string `json:"names"`
}

type validationList struct {
	Valid bool          `json:"valid"`
	Items []*validation `json:"items"`
}

func (a *app) validate(installConfig string, f *inputflags.Flags, o command.Format) (*validation, error) {
	v, err := a.check(installConfig, f)
	if err != nil {
		return v, err
	}
	if o != "json" {
		if !v.Valid {
			return v, v.Problems
		}
		a.Report(v.Problems)
	}
	err = show(a, o, v, validationText)
	if err == nil && !v.Valid {
		err = command.Code(command.ExitOf(v.Problems))
	}
	return v, err
}

func (a *app) check(installConfig string, f *inputflags.Flags) (*validation, error) {
	v := &validation{InstallConfig: installConfig, Problems: problem.List{}, Files: []string{}}
	cluster, err := a.validated(installConfig, f, v)
	var found problem.List
	switch {
	case errors.As(err, &found):
		v.Problems = append(v.Problems, found...)
		return v, nil
	case err != nil:
		return v, err
	}
	v.Valid, v.NotRead, v.Cluster = true, unread(installConfig, v.Files), summarize(cluster)
	v.Renders, err = produces(cluster)
	return v, err
}

// validateFleet checks clusters one by one, and prints the verdict of each.
func (a *app) validateFleet(fleet input.Fleet, f *inputflags.Flags, o command.Format, strict bool) error {
	type outcome struct {
		*validation
		err error
	}
	all := validationList{Valid: true, Items: []*validation{}}
	worst := command.OK
	err := ordered(len(fleet.Clusters), func(i int) outcome {
		v, err := a.check(fleet.Clusters[i].Config, f)
		return outcome{v, err}
	}, func(_ int, v outcome) error {
		if v.err != nil {
			return v.err
		}
		all.Items = append(all.Items, v.validation)
		switch {
		case !v.Valid:
			worst, all.Valid = max(worst, command.ExitOf(v.Problems)), false
		case strict && len(v.Problems) > 0:
			worst = max(worst, command.Finding)
		}
		if o != "json" {
			a.Problems(v.Problems)
		}
		return nil
	})
	if err == nil {
		err = show(a, o, all, validationsText)
	}
	if err == nil && worst != command.OK {
		err = command.Code(worst)
	}
	return err
}

func (v *validation) verdict() string {
	n := len(v.Problems)
	switch {
	case !v.Valid:
		return command.Plural(len(v.Problems.Errors()), "problem")
	case n > 0:
		return "valid, " + command.Plural(n, "warning")
	}
	return "valid"
}

func validationsText(p *printer, all validationList) {
	valid := 0
	for _, v := range all.Items {
		p.line("%s: %s", v.InstallConfig, v.verdict())
		if v.Valid {
			valid++
		}
	}
	p.line("%d of %d clusters valid", valid, len(all.Items))
}

func validationText(p *printer, v *validation) {
	name := func(s string) string {
		if s == "-" {
			return "standard input"
		}
		return s
	}
	p.line("%s: %s", name(v.Files[0]), v.verdict())
	p.line("Read: %s", strings.Join(lists.Map(v.Files, name), ", "))
	if v.NotRead != nil {
		p.line("Not read, as standard input has no folder: %s. Name them by flags.", strings.Join(v.NotRead, ", "))
	}
	fmt.Fprintf(p, "\n%s", describe(v.Cluster))
	kinds := lists.Map(v.Renders, func(r rendered) string { return r.Kind + " " + strings.Join(r.Names, ", ") })
	fmt.Fprintf(p, "Renders: %s\n", strings.Join(kinds, "; "))
}

// validated reads and resolves a cluster, and records the files read. The error holds all
// problems; v gets the warnings of a cluster without errors.
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

// defaultAgent reports an image of the agent that is in no registry, in the file that should
// name another.
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

// unread returns the files of the working directory that would be read next to an
// install-config there, but not next to standard input, without those that were named.
func unread(installConfig string, read []string) (names []string) {
	if installConfig != "-" {
		return nil
	}
	for _, name := range []string{input.VIPConfigName, input.AgentConfigName, input.ClusterIngressName, input.FleetName} {
		if _, err := os.Stat(name); err == nil && !slices.Contains(read, name) {
			names = append(names, name)
		}
	}
	return names
}

// produces returns what render would write for a cluster.
func produces(c *render.Cluster) (out []rendered, err error) {
	files, err := c.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig, render.FormatIgnition}})
	names := map[string][]string{}
	for _, f := range files {
		folder, name := path.Split(f.Path)
		names[folder] = append(names[folder], strings.TrimSuffix(name, path.Ext(name)))
	}
	for _, kind := range [][2]string{{"machineconfigs/", "MachineConfigs"}, {"ignition/", "Ignition configs"}, {"manifests/", "manifests"}} {
		if list := names[kind[0]]; list != nil {
			out = append(out, rendered{kind[1], list})
		}
	}
	return out, err
}
