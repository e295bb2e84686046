package firewall

import (
	"context"
	"errors"
	"time"
)

// stuckAfter is many times the duration of the Keeper's interval and a transaction.
const stuckAfter = time.Minute

// Stuck returns an error if the loop that keeps the redirect hangs, for the job's
// liveness probe.
func (j *Job) Stuck() error { return j.watchdog.Stuck("the loop that keeps the redirect", stuckAfter) }

// Health returns a problem of the job for /healthz.
func (j *Job) Health(context.Context) error {
	if err := j.Stuck(); err != nil {
		return err
	}
	if p := j.last.Load(); p != nil && p.Why != "" {
		return errors.New("the redirect is not in place: " + p.Why)
	}
	return nil
}
