package cli

import (
	"errors"
	"os"
	"os/exec"
)

// execPlugin runs a program with the streams of this one, and returns its exit code.
func execPlugin(program string, args []string) (code int, err error) {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	return 0, err
}
