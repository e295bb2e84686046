//go:build unix

package cli

import (
	"os"
	"syscall"
)

// become runs a program in place of this one, so that signals, the terminal and the exit
// code are its own.
func become(program string, args []string) (code int, err error) {
	return 0, syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
