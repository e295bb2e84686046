package agentcli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/fileio"
)

func (a *app) installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DEST",
		Short: "Copy this program to DEST, for the other containers of a pod",
		Long: `Copy this program to the file DEST, executable for everyone. Init containers run it, so
that the stock image of a daemon can run the agent. The program is static: it needs
nothing of that image.`,
		Example: "  vipgen-agent install /vipgen/vipgen-agent",
		Args:    command.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			// The file at the program's path may have been replaced; this is the running one.
			self, err := os.Open("/proc/self/exe")
			if err != nil {
				return err
			}
			defer self.Close()
			if err := fileio.Install(args[0], self, 0o755); err != nil {
				return err
			}
			a.log.Info("installed", "path", args[0])
			return nil
		},
	}
}
