package cli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of vipgen.yaml, for editors",
		Long: `Print the JSON Schema of vipgen.yaml (kind VIPConfig). An editor with a YAML
language server completes and checks the file with this as its first line:

  # yaml-language-server: $schema=vipconfig.schema.json`,
		Example: "  vipgen schema > vipconfig.schema.json",
		Args:    command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(v1alpha1.VIPConfigSchema)
			return err
		},
	}
}
