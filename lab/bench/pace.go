package bench

import (
	"fmt"
	"time"
)

// Step is a run of a scenario that begins.
type Step struct {
	Scenario, Scenarios int // which of them, counted from 1
	Name                string
	Run, Runs           int // of the scenario with each profile, counted from 1
	Profile             string
	// Left is about how long the benchmark still takes, as long as the runs so far on
	// average; 0 before the first has ended.
	Left time.Duration
}

// String names the run: "power-loss, run 1 of 5, fast".
func (s Step) String() string {
	return fmt.Sprintf("%s, run %d of %d, %s", s.Name, s.Run, s.Runs, s.Profile)
}

// pace estimates how long runs take.
type pace struct {
	began       time.Time
	done, total int // runs
}

func (p *pace) left(now time.Time) time.Duration {
	if p.done == 0 {
		return 0
	}
	return now.Sub(p.began) / time.Duration(p.done) * time.Duration(p.total-p.done)
}
