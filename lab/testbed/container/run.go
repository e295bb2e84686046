package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Result is the result of a container that has ended.
type Result struct {
	Out, Err string // standard output and standard error
	Code     int    // see Container.ExitCode
}

// Run runs a container to its end and returns its output. If ctx ends, it stops the container and
// returns an error.
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
