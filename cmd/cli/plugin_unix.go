//go:build unix

package cli

import (
	"os"
	"syscall"
)

// execPlugin replaces this process by a program, so that signals, the terminal and the exit code
// are the program's.
func execPlugin(program string, args []string) (code int, err error) {
	return 0, syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
