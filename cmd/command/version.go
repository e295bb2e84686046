package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// KindVersion is the kind of the output of 'version -o json'.
const KindVersion = "Version"

// AddVersion adds to root a command `version` and a flag --version.
func AddVersion(root *cobra.Command) {
	show := func(c *cobra.Command) error {
		v := readBuild()
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s (%s)\n", root.Name(), v.Version, v.Go)
		return err
	}
	var o Format
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of " + root.Name(),
		Example: "  " + root.Name() + " version",
		Args:    Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if o == "json" {
				return Object(c.OutOrStdout(), KindVersion, readBuild())
			}
			return show(c)
		},
	}
	o.Add(c, "text", "json")
	root.AddCommand(c)
	asked := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *asked {
			return show(c)
		}
		return c.Help()
	}
}
