// Command manual writes the man pages of vipgen-lab into a directory, for releases.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/vipgen/vipgen/internal/image/man"
	"github.com/vipgen/vipgen/lab/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "manual: expected VERSION DIR")
		os.Exit(2)
	}
	for name, page := range man.Pages(cli.Command(), os.Args[1]) {
		if err := os.WriteFile(filepath.Join(os.Args[2], name), page, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "manual:", err)
			os.Exit(3)
		}
	}
}
