package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) schemaCommand() *cobra.Command {
	var of string
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of vipgen.yaml, or of what -o json prints",
		Long: `Print the JSON Schema of vipgen.yaml (kind VIPConfig). An editor with a YAML
language server completes and checks the file with this as its first line:

  # yaml-language-server: $schema=vipconfig.schema.json

With --of, print the schema of what a command prints with -o json, by its name:
` + strings.Join(wrap(strings.Join(schemaNames(), ", "), lineWidth), "\n") + `.
Fields may be added; those that are there keep their names and meaning.`,
		Example: `  vipgen schema > vipconfig.schema.json
  vipgen schema --of validate`,
		Args: command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			text := v1alpha1.VIPConfigSchema
			if of != "" {
				var err error
				if text, err = outputSchema(of); err != nil {
					return command.Usage(c, err)
				}
			}
			_, err := a.Out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&of, "of", "", "`name` of the command whose -o json to describe (default: the schema of vipgen.yaml)")
	command.Complete(c, "of", schemaNames()...)
	return c
}
