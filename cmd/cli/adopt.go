package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

type adoptFlags struct {
	importFlags
	accept      []string
	canary      string
	canaryNodes []string
	check       bool
	to          string
	// defaultImage allows vipgen's default image of the agent.
	defaultImage bool
	update       bool
}

func (a *app) adoptCommand() *cobra.Command {
	var f adoptFlags
	c := &cobra.Command{
		Use:   "adopt FILE|DIR",
		Short: "Plan how a running cluster changes to vipgen",
		Long: `Plan how a cluster that OpenShift's own keepalived serves changes to vipgen: which of
the operator's files and units vipgen replaces, which stay, which it adds; which
MachineConfigs have the same files; what reboots, per pool, with and without a node
disruption policy; and whether nodes can pull the images. It reads what 'vipgen import'
reads. The operator's MachineConfigs, the ClusterVersion and the pools have to be in it.

A file or unit of the operator that has to do with VIPs and that the operator contract
of the release does not know stops the plan. Look at it, then --accept its name.

With --dir it writes the input, the rendered tree, the operator's files and STEPS.md, to
be committed to Git. With --check it compares a later export with that directory, before
and after an update of OpenShift, and with --to it says what the next release changes;
--update makes that export the one to compare with from then on.

` + reboots + `

Exit code 0: done. 1: with --check, something changed. 2: bad input, or the operator has
an unknown file. 4: a file of vipgen's is shadowed by another MachineConfig.

Documentation: ` + command.Pages + `adopt.md`,
		Example: `  # Plan, then write the directory
  ` + adopt.ExportKinds + ` > live.yaml
  vipgen adopt live.yaml
  vipgen adopt live.yaml --dir demo --canary canary --canary-node worker-0 \
    --agent-image registry.example.com/vipgen-agent@sha256:...

  # Before and after an update of OpenShift
  vipgen adopt later.yaml --dir demo --check --to 4.19
  vipgen adopt later.yaml --dir demo --update`,
		Args: command.Args(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.check && f.update:
				return command.Usagef(c, "--check and --update cannot be used together")
			case f.check:
				return a.adoptCheck(c, args, &f)
			case f.update:
				return a.adoptUpdate(c, args, &f)
			}
			a.Writes = f.dir != ""
			given, err := f.given(c)
			if err != nil {
				return err
			}
			if err := f.usage(c); err != nil {
				return err
			}
			return a.adopt(args, adopt.Options{Given: given, Accept: f.accept, Canary: f.canary, CanaryNodes: f.canaryNodes}, &f)
		},
	}
	f.importFlags.add(c, "`directory` to write to; with --check, the one that was written (default: write nothing)")
	flags := c.Flags()
	flags.StringSliceVar(&f.accept, "accept", nil, "`names` of unknown files and units of the operator that stay, and of MachineConfigs that may replace vipgen's files")
	flags.StringVar(&f.canary, "canary", "", "`name` of a pool of workers to update first")
	flags.StringSliceVar(&f.canaryNodes, "canary-node", nil, "`nodes` of the canary pool")
	allowDefaultImage(c, &f.defaultImage, "with --dir, ")
	flags.BoolVar(&f.check, "check", false, "write nothing; print what changed since --dir was written, exit code 1 if something did")
	flags.BoolVar(&f.update, "update", false, "write what the operator lays down by now into --dir, after an update of OpenShift")
	flags.StringVar(&f.to, "to", "", "with --check, also print what this OpenShift `version` changes")
	command.Complete(c, "to", ignition.SupportedOpenShift()...)
	return c
}

// usage reports flags that exclude or require each other.
func (f *adoptFlags) usage(c *cobra.Command) error {
	switch {
	case f.to != "":
		return command.Usagef(c, "--to needs --check")
	case f.canary == "" && f.canaryNodes != nil:
		return command.Usagef(c, "--canary-node needs --canary")
	case f.canary != "" && (!v1alpha1.ValidLabel(f.canary) || slices.Contains([]string{v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter}, f.canary)):
		return command.Usagef(c, "--canary %s: expected the name of a new pool: lower-case letters, digits and hyphens", f.canary)
	}
	for _, name := range f.canaryNodes {
		if !v1alpha1.ValidName(name) {
			return command.Usagef(c, "--canary-node %s: expected the name of a node", name)
		}
	}
	return nil
}

func (a *app) adopt(names []string, o adopt.Options, f *adoptFlags) error {
	if err := newDirectory(f.dir); err != nil {
		return err
	}
	files, err := a.importFiles(names)
	if err != nil {
		return err
	}
	plan, list := adopt.Read(files, o)
	if plan == nil {
		return list.Err()
	}
	if f.dir != "" && !f.defaultImage {
		list = append(list, plan.DefaultAgent()...)
	}
	if list.Err() == nil && f.dir != "" {
		out, err := planFiles(plan)
		if err != nil {
			return err
		}
		// A pattern that matches nothing: the files are the user's from now on.
		if err := a.writeDir(tree.Dir{Path: f.dir, Owned: ".vipgen-adopt"}, out, false); err != nil {
			return err
		}
	}
	if err := a.printAdoption(plan, f, list.Err() == nil); err != nil {
		return err
	}
	a.Report(list)
	switch errs := list.Errors(); {
	case len(errs) == 0:
		return nil
	case slices.ContainsFunc(errs, func(p problem.Problem) bool { return p.Code != problem.Shadowed }):
		return command.Code(command.Input)
	}
	return command.Code(command.Shadowed)
}

// planFiles returns the files of the directory, with the records of files that are rewritten:
// by 'vipgen render' and by --update.
func planFiles(plan *adopt.Plan) ([]render.OutputFile, error) {
	out, err := plan.Files()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{adopt.RenderedDir, adopt.OperatorDir} {
		var own []render.OutputFile
		for _, f := range out {
			if rest, ok := strings.CutPrefix(f.Path, dir); ok {
				own = append(own, render.OutputFile{Path: rest})
			}
		}
		record := tree.RecordOf(own)
		record.Path = path.Join(dir, record.Path)
		out = append(out, record)
	}
	return out, nil
}

func (a *app) printAdoption(plan *adopt.Plan, f *adoptFlags, written bool) error {
	return show(a, f.output, plan, func(out *printer, plan *adopt.Plan) {
		planText(out, plan)
		if f.dir != "" && written {
			fmt.Fprintf(out, "\nNext: %s\n", command.SafeLine(filepath.Join(f.dir, adopt.StepsName)))
		}
	})
}

func (a *app) adoptCheck(c *cobra.Command, names []string, f *adoptFlags) error {
	switch {
	case f.dir == "":
		return command.Usagef(c, "missing: --dir DIR, which 'vipgen adopt' has written")
	case f.to != "" && !slices.Contains(ignition.SupportedOpenShift(), f.to):
		return command.Usagef(c, "--to %s: expected a release from %s", f.to, inputflags.Versions())
	case f.accept != nil || f.canary != "" || f.canaryNodes != nil:
		return command.Usagef(c, "--accept, --canary and --canary-node are of no use with --check")
	}
	files, later, err := a.adopted(names, f.dir)
	if err != nil {
		return err
	}
	check, problems := adopt.Since(files, later, f.to)
	if err := problems.Err(); err != nil {
		return err
	}
	a.Report(problems)
	return found(show(a, f.output, check, checkText), check.Findings() > 0)
}

// adopted reads a directory written before, and a later export.
func (a *app) adopted(names []string, root string) (files, later []render.File, err error) {
	if later, err = a.importFiles(names); err != nil {
		return nil, nil, err
	}
	dir := dirSide{root}
	list, err := dir.list()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range list {
		if !adopt.Wanted(name) {
			continue
		}
		data, err := dir.read(name)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, render.File{Name: name, Data: data})
	}
	return files, later, nil
}

// adoptUpdate writes the operator's files of a later export.
func (a *app) adoptUpdate(c *cobra.Command, names []string, f *adoptFlags) error {
	a.Writes = true
	switch {
	case f.dir == "":
		return command.Usagef(c, "missing: --dir DIR, which 'vipgen adopt' has written")
	case f.canary != "" || f.canaryNodes != nil || f.to != "":
		return command.Usagef(c, "--canary, --canary-node and --to are of no use with --update")
	}
	files, later, err := a.adopted(names, f.dir)
	if err != nil {
		return err
	}
	out, list := adopt.Update(files, later, f.accept)
	if err := list.Err(); err != nil {
		return err
	}
	a.Report(list)
	for i := range out {
		out[i].Path = strings.TrimPrefix(out[i].Path, adopt.OperatorDir)
	}
	return a.writeDir(tree.Dir{Path: filepath.Join(f.dir, adopt.OperatorDir)}, out, false)
}
