// Command kubectl-vipgen is `kubectl vipgen` and `oc vipgen`: vipgen's commands for running
// clusters, on the cluster of the kubeconfig.
package main

import (
	"os"

	"github.com/vipgen/vipgen/cmd/cli"
)

func main() { os.Exit(cli.RunLive(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
