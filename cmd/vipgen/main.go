// Command vipgen renders the VIP stack of a cluster from its install-config.
package main

import (
	"os"
	"runtime/debug"

	"github.com/vipgen/vipgen/cmd/cli"
)

// gcPercent mostly lets a command end before its garbage is collected: a render allocates about
// 10 MiB. GOGC has precedence.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
