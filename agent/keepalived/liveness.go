package keepalived

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stuckAfter is many times the duration of a turn of the publishing loop.
const stuckAfter = 30 * time.Second

// askDaemonTimeout bounds how long keepalived may take to answer Health.
const askDaemonTimeout = 3 * time.Second

// Stuck returns an error if one of the job's loops hangs, for its liveness probe.
func (j *Job) Stuck() error {
	return errors.Join(j.loop.Stuck(), j.publisher.watchdog.Stuck("the loop that watches the node", stuckAfter))
}

// Health returns a problem of the job for /healthz: a loop that hangs, or a wanted
// keepalived that does not run or answer. A node that takes no part has none.
func (j *Job) Health(ctx context.Context) error {
	s := j.publisher.last.Load()
	if s == nil {
		return errors.New("the job has not begun")
	}
	if err := j.Stuck(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askDaemonTimeout, fmt.Errorf("waited for %v", askDaemonTimeout))
	defer cancel()
	return askDaemon(ctx, s, j.Root)
}
