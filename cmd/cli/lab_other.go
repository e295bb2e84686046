//go:build !linux

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// labCommand refuses: a lab is made of what only Linux has.
func (a *app) labCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lab",
		Short: "Run a cluster on this machine and break it (Linux only)",
		Long: `On Linux: build the cluster of an install-config from network namespaces, run on its
nodes the output of 'vipgen render', and see which nodes hold the VIPs while nodes,
links and services fail. Not on this system.

Documentation: ` + pages + `lab.md`,
		Example:            "  sudo vipgen lab up install-config.yaml",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("a lab is made of network namespaces, which only Linux has: run it on a Linux machine or in a virtual one")
		},
	}
}
