package bgp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// stuckAfter is many times the duration of a turn.
const stuckAfter = 30 * time.Second

// Stuck returns an error if the job's loop hangs, for its liveness probe.
func (j *Job) Stuck() error { return j.watchdog.Stuck("the loop that announces VIPs", stuckAfter) }

// Health returns a problem of the job for /healthz.
func (j *Job) Health(context.Context) error {
	s := j.last.Load()
	switch {
	case s == nil:
		return errors.New("the job has not begun")
	case j.Stuck() != nil:
		return j.Stuck()
	case s.Problem != "":
		return errors.New(s.Problem)
	}
	established := 0
	for i := range s.Peers {
		if s.Peers[i].Established() {
			established++
		}
	}
	if s.Mode == v1alpha1.AnnounceBGP && established == 0 {
		return fmt.Errorf("none of %d BGP sessions is established", len(s.Peers))
	}
	return nil
}
