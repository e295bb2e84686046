package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
)

// outputFlag is -o of commands that print.
type outputFlag string

func (o *outputFlag) add(c *cobra.Command, formats ...string) {
	c.Flags().StringVarP((*string)(o), "output", "o", formats[0], "`form` to print in: "+strings.Join(formats, ", "))
	complete(c, "output", formats...)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(formats, string(*o)) {
			return usage(c, fmt.Errorf("-o %s: expected %s", *o, strings.Join(formats, " or ")))
		}
		return run(c, args)
	}
}

// printJSON prints a value as indented JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) validateCommand() *cobra.Command {
	var f inputFlags
	var o outputFlag
	c := &cobra.Command{
		Use:   "validate [install-config.yaml]",
		Short: "Check the input of a cluster and report every problem",
		Long: `Check install-config.yaml and, where they are there, vipgen.yaml and
agent-config.yaml beside it. Every problem is reported at once, each with file,
line, column, field and a code that does not change between releases.

Exit code 0: fine, warnings aside. 2: there are problems.`,
		Example: `  vipgen validate install-config.yaml
  vipgen validate -o json install-config.yaml | jq '.problems[].code'`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.validate(installConfigArg(args), &f, o)
		},
	}
	f.add(c)
	o.add(c, "text", "json")
	return c
}

func (a *app) validate(installConfig string, f *inputFlags, o outputFlag) error {
	cluster, list, err := a.cluster(installConfig, f)
	var found problem.List
	switch {
	case err == nil:
		found = list
	case asList(err, &found):
		if list != nil {
			found = list
		}
	default:
		return err
	}
	if o == "json" {
		result := struct {
			Valid    bool         `json:"valid"`
			Problems problem.List `json:"problems"`
		}{err == nil, append(problem.List{}, found...)}
		if err := a.printJSON(result); err != nil {
			return err
		}
		if !result.Valid {
			return errReported
		}
		return nil
	}
	if err != nil {
		return found
	}
	a.report(found)
	_, err = fmt.Fprint(a.out, describe(cluster))
	return err
}
