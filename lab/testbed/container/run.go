package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Result is what a container left that was run to its end.
type Result struct {
	Out, Err string // what it printed on standard output and standard error
	Code     int    // as Container.ExitCode has it
}

// Run runs a container to its end, whose logs it keeps to itself. When ctx ends
// the container is stopped, and that is an error.
func Run(ctx context.Context, h *host.Host, cfg Config) (Result, error) {
	logs, err := os.MkdirTemp(h.Dir(), "run-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(logs)
	cfg.Log, cfg.ErrorLog = filepath.Join(logs, "out"), filepath.Join(logs, "err")
	c, err := Start(h, cfg)
	if err != nil {
		return Result{}, err
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), c.Stop(context.Background(), time.Second))
	}
	out, outErr := os.ReadFile(cfg.Log)
	errOut, errErr := os.ReadFile(cfg.ErrorLog)
	return Result{string(out), string(errOut), c.ExitCode()}, errors.Join(err, outErr, errErr)
}
