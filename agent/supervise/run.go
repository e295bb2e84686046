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

// maxOutput bounds the kept output of a program.
const maxOutput = 16 << 10

// Output runs a program and returns its output, at most 16 KiB of standard output and
// standard error. If ctx ends first, the program and all its children are killed and the
// error is ctx's; else the error is nil for exit status 0 or an *exec.ExitError.
func Output(ctx context.Context, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	var out limited
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for processes that left the group and hold the pipe
	if err := startChild(cmd); err != nil {
		return nil, fmt.Errorf("running %s: %w", path, cmp.Or(context.Cause(ctx), err))
	}
	defer forgetChild(cmd)
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s did not end: %w", path, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay): // ended well, and left a process behind
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
