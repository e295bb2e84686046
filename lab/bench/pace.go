package bench

import (
	"fmt"
	"time"
)

// Step is a run of a scenario that is about to start.
type Step struct {
	Scenario, Scenarios int // number of the scenario, from 1, and of how many
	Name                string
	Run, Runs           int // number of the scenario's run with each profile, from 1, and of how many
	Profile             string
	// Left estimates the time left from the average of the runs so far; 0 before the first has
	// ended.
	Left time.Duration
}

// String describes the run: "power-loss, run 1 of 5, fast".
func (s Step) String() string {
	return fmt.Sprintf("%s, run %d of %d, %s", s.Name, s.Run, s.Runs, s.Profile)
}

// pace estimates the duration of runs.
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
