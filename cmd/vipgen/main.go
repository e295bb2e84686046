// Command vipgen renders the VIP stack of a cluster from its install-config.
package main

import (
	"os"

	"github.com/vipgen/vipgen/cmd/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
