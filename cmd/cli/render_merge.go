package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

// merge merges a pool's bundle into an installer's Ignition config, in place.
func (a *app) merge(c *cobra.Command, cluster *render.Cluster, f *renderFlags, installConfig string) error {
	role := strings.TrimSuffix(filepath.Base(f.merge), ".ign")
	switch {
	case len(f.roles) == 1:
		role = f.roles[0]
	case len(f.roles) > 1:
		return command.Usagef(c, "--merge takes one --role, the pool of the file")
	case !slices.Contains([]string{"bootstrap", "master", "worker", "arbiter"}, role):
		return command.Usagef(c, "--merge %s: give --role, as its name does not say for which pool it is", f.merge)
	}
	if err := checkRoles(cluster, []string{role}); err != nil {
		return command.Usage(c, err)
	}
	defer collectEarlier()()
	bundles, err := cluster.Bundles()
	if err != nil {
		return err
	}
	enc, err := cluster.Encoder()
	if err != nil {
		return command.Usage(c, err)
	}
	base, err := a.Base(f.merge)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(bundles, func(b ignition.Bundle) bool { return b.Role == role })
	merged, conflicts, err := ignition.Merge(base, bundles[i], enc, f.overwrite)
	if err != nil {
		return problem.List{{File: f.merge, Severity: problem.Error, Code: problem.Syntax, Found: strings.TrimPrefix(err.Error(), "base config: "),
			Expected: "an Ignition config of version 3, such as an installer's bootstrap.ign"}}
	}
	if len(conflicts) > 0 && !f.overwrite {
		return conflictProblems(f.merge, conflicts)
	}
	if err := cluster.Installable(); err != nil {
		return command.Usage(c, err)
	}
	if err := f.checkAgentImage(cluster, installConfig); err != nil {
		return err
	}
	switch {
	case bytes.Equal(base, merged):
		a.summary(cluster, f.merge+" is as rendered")
		return nil
	case f.check:
		p := a.printer()
		changesText(p, "", []tree.Change{{Path: f.merge, Kind: tree.Differs, Have: base, Got: merged}})
		_, err := a.Out.Write(p.Bytes())
		return found(err, true)
	case f.merge == "-":
		_, err := a.Out.Write(merged)
		return err
	}
	if err := tree.WriteFile(f.merge, merged); err != nil {
		return err
	}
	a.summary(cluster, fmt.Sprintf("%s: %d files and %d units merged", f.merge, len(bundles[i].Files), len(bundles[i].Units)))
	return nil
}

func conflictProblems(file string, conflicts []ignition.Conflict) error {
	return problem.List(lists.Map(conflicts, func(c ignition.Conflict) problem.Problem {
		return problem.Problem{File: file, Severity: problem.Error, Code: problem.ConflictingFields, Field: c.Kind + " " + c.Name,
			Found: "another one, " + c.Detail, Expected: "nothing, or the same as rendered", Hint: "give --overwrite to replace it"}
	}))
}
