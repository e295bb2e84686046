package coredns

import (
	"context"
	"errors"
)

// Stuck returns an error if the job's loop hangs, for its liveness probe.
func (j *Job) Stuck() error { return j.loop.Stuck() }

// Health returns a problem of the job for /healthz.
func (j *Job) Health(context.Context) error {
	if err := errors.Join(j.Stuck(), j.daemon.Health()); err != nil {
		return err
	}
	if s := j.last.Load(); s != nil && !s.Serving {
		return errors.New("CoreDNS does not answer: " + s.Why)
	}
	return nil
}
