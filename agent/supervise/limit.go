package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// limiter is the name under which the agent executes itself in order to lower
// its limits and then become the daemon. A limit of a child can be set in no
// other way that is in force before the daemon's first instruction: Go has no
// hook between fork and exec, and lowering the agent's own hard limit could not
// be undone.
const limiter = "vipgen-limit"

// limit changes cmd such that it runs with that many open files, at most.
func limit(cmd *exec.Cmd, files uint64) {
	if _, cmd.Err = exec.LookPath(cmd.Path); cmd.Err != nil {
		return // else the child would be the one to find out
	}
	cmd.Args = append([]string{limiter, strconv.FormatUint(files, 10), cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
}

// init becomes the daemon, if that is what this process was started for. It
// runs on the process's main thread, which is the one that the parent-death
// signal was set for, and the signal stays set.
func init() {
	if len(os.Args) < 4 || os.Args[0] != limiter {
		return
	}
	fmt.Fprintln(os.Stderr, become(os.Args[1], os.Args[2], os.Args[3:]))
	os.Exit(127) // as a shell says that it could not run a program
}

// become returns only if it fails.
func become(files, path string, args []string) error {
	n, err := strconv.ParseUint(files, 10, 64)
	if err != nil {
		return err
	}
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	n = min(n, have.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
