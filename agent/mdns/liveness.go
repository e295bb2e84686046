package mdns

import (
	"context"
	"errors"
	"time"
)

// stuckAfter is more than the 30 seconds after which addresses are polled without a
// notification.
const stuckAfter = 2 * time.Minute

// Stuck returns an error if the loop that follows addresses hangs, for the job's liveness
// probe.
func (j *Job) Stuck() error { return j.watchdog.Stuck("the loop that follows addresses", stuckAfter) }

// Health returns a problem of the job for /healthz.
func (j *Job) Health(context.Context) error {
	if err := j.Stuck(); err != nil {
		return err
	}
	p := j.last.Load()
	if p == nil {
		return errors.New("the job has not begun")
	}
	if !p.Announced {
		return errors.New("the node's name is not announced: " + p.Why)
	}
	return nil
}
