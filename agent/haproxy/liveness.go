package haproxy

import (
	"context"
	"errors"
	"fmt"
)

// Stuck returns an error if the job's loop hangs, for its liveness probe.
func (j *Job) Stuck() error { return j.loop.Stuck() }

// Health returns a problem of the job for /healthz. Backends that are all down are none:
// HAProxy answers, and nothing else can be done.
func (j *Job) Health(ctx context.Context) error {
	if err := errors.Join(j.Stuck(), j.daemon.Health()); err != nil {
		return err
	}
	if err := probe(ctx); err != nil {
		return fmt.Errorf("HAProxy does not answer: %w", err)
	}
	return nil
}
