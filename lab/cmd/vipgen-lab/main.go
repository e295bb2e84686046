// Command vipgen-lab runs clusters in network namespaces and breaks them: vipgen lab.
package main

import (
	"os"

	"github.com/vipgen/vipgen/lab/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
