package haproxy

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// crashJob is a Job with a simulated HAProxy.
type crashJob struct {
	*Job
	t *testing.T
}

func newCrashJob(t *testing.T) crashJob {
	dir, err := state.Open(t.TempDir())
	testkit.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	log := slog.New(slog.DiscardHandler)
	return crashJob{&Job{State: dir, Source: &facts.Source{}, Log: log}, t}
}

func (c crashJob) expect(when string, serving, restarting bool) {
	c.t.Helper()
	s, err := state.Read[state.HAProxy](c.State)
	if err != nil || s == nil {
		c.t.Fatalf("%s: %v, error %v", when, s, err)
	}
	if s.Serving != serving || s.Restarting != restarting || s.Serving == (s.Why != "") {
		c.t.Errorf("%s: %+v; want serving %t, restarting %t", when, s, serving, restarting)
	}
}

// A crash is published at once. HAProxy that ran for a while before gets time to restart; one
// that crashes repeatedly does not.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashJob(t)
		c.set(0, true, "")
		time.Sleep(steadyAfter)
		c.ended(false)
		c.expect("it crashed", false, true)
		c.set(0, true, "")
		c.expect("a check of the process that ended", false, true)
		time.Sleep(restartTime / 2)
		c.set(1, true, "")
		c.expect("it is back", true, true)
		time.Sleep(restartTime/2 + time.Millisecond)
		c.expect("a while later", true, false)
		c.ended(false)
		c.expect("it crashed again", false, false)

		c.set(2, true, "")
		time.Sleep(steadyAfter)
		c.ended(false)
		c.expect("it crashed after a while", false, true)
		time.Sleep(restartTime + time.Millisecond)
		c.expect("it did not come back", false, false)

		c.set(3, true, "")
		time.Sleep(steadyAfter)
		c.ended(true)
		c.expect("it ended with the job", false, false)
	})
}
