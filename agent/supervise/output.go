package supervise

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// maxOutput bounds what is kept of what a program prints.
const maxOutput = 16 << 10

// Output runs a program to its end and returns what it printed, at most 16 KiB,
// on both standard output and standard error. When ctx ends before, the program
// is killed with all that it started and the error is that of ctx; else the
// error is nil for exit status 0 or an *exec.ExitError.
func Output(ctx context.Context, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	var out limited
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what left the group and holds the pipe
	if err := own(cmd); err != nil {
		return nil, fmt.Errorf("run %s: %w", path, cmp.Or(context.Cause(ctx), err))
	}
	defer disown(cmd)
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s did not end: %w", path, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay): // it has ended well, and left something behind
		err = nil
	}
	return out.kept.Bytes(), err
}

// limited keeps the first maxOutput bytes.
type limited struct{ kept bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), maxOutput-l.kept.Len())
	l.kept.Write(p[:keep])
	return len(p), nil
}
