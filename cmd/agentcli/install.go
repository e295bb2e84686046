package agentcli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/atomicfile"
	"github.com/vipgen/vipgen/cmd/version"
)

func (a *app) installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DEST",
		Short: "Copy this program to DEST, for the other containers of a pod",
		Long: `Copy this program to the file DEST, executable for everyone. An init container
does that, so that the stock image of a daemon can run under the agent although
it does not have it. The program is static: it needs nothing of that image.`,
		Example: "  vipgen-agent install /vipgen/vipgen-agent",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			// The name of the program may lead elsewhere by now; this does not.
			self, err := os.Open("/proc/self/exe")
			if err != nil {
				return err
			}
			defer self.Close()
			if err := atomicfile.Install(args[0], self, 0o755); err != nil {
				return err
			}
			a.log.Info("installed", "path", args[0])
			return nil
		},
	}
}

func (a *app) versionCommand() *cobra.Command {
	var o formatFlag
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of vipgen-agent",
		Example: "  vipgen-agent version",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := version.Read()
			if o.value == "json" {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "vipgen-agent %s (%s)\n", v.Version, v.Go)
			return err
		},
	}
	o.add(c)
	return c
}
