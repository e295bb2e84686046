package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/internal/page/timeline"
)

// Report is a benchmark: each scenario, N times, with each profile.
type Report struct {
	Origin    Origin
	Machine   []Fact   // on what it was measured, and with which versions
	Profiles  []string // such as "fast" and "classic"
	Reference string   // the one of Profiles that the others are compared with, if any
	Scenarios []Scenario
}

// Origin says when a report was measured, by which vipgen, of which cluster, and by which
// command. Any of it may be missing.
type Origin struct {
	Date    time.Time `json:"date,omitzero"`
	Version string    `json:"version,omitempty"`
	Cluster string    `json:"cluster,omitempty"`
	Command string    `json:"command,omitempty"`
}

// Fact is one of the machine or of what ran on it, such as "cores", "2".
type Fact = page.Fact

// Scenario is one thing that goes wrong, or is done, in each run.
type Scenario struct {
	Name    string // for programs, such as "power-loss"
	Title   string // for people, a few words
	What    string // a sentence or two
	VIP     string // that the client asks
	Aim     *Aim   // nil if there is none
	Results []Result
}

// Aim is what a scenario should stay within.
type Aim struct {
	Profile string // that it is for; every one if empty
	Median  time.Duration
	Worst   time.Duration
	Lost    int // requests, in any run
}

// Result is what was measured with one profile. A scenario has one for each, in
// the order of Report.Profiles.
type Result struct {
	Profile       string
	NotApplicable string // why there are no runs, if that is so
	Runs          []Run
}

// Run is a scenario that was played once. Times are since its start.
type Run struct {
	timeline.Run
	Outage  time.Duration // how long the client was without an answer
	Lost    int           // requests without an answer
	Asked   int           // all requests
	Slowest time.Duration // of the answers
	Pause   time.Duration // the longest time between two requests: all figures are no better
	Clients []Client      // of kinds and places; none if there were none but the one that asks
	Error   string        // why the run says nothing, if that is so
}

// What a run is drawn of.
type (
	Span   = timeline.Span
	Answer = timeline.Answer
	Event  = timeline.Event
)

// Client is what became of the clients of one kind at one place.
type Client struct {
	Kind, Place string
	Count       int
	Longest     time.Duration // that any of them waited for what was due
	Lost        int           // leader elections that were lost
	Stuck       int           // that did not work again until the run was ended
}

// good returns the runs that say something, sorted by their outage, then by the
// requests that were lost.
func (r Result) good() []Run {
	var good []Run
	for _, run := range r.Runs {
		if run.Error == "" {
			good = append(good, run)
		}
	}
	slices.SortStableFunc(good, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Outage, b.Outage), cmp.Compare(a.Lost, b.Lost))
	})
	return good
}

// median returns the run in the middle; of an even number of runs the longer of
// the two there. It is not ok without a good run.
func (r Result) median() (run Run, ok bool) {
	good := r.good()
	if len(good) == 0 {
		return Run{}, false
	}
	return good[len(good)/2], true
}

// worst returns the run with the longest outage.
func (r Result) worst() (run Run, ok bool) {
	good := r.good()
	if len(good) == 0 {
		return Run{}, false
	}
	return good[len(good)-1], true
}

// slowest returns the longest time that an answer took in any run.
func (r Result) slowest() time.Duration {
	var slowest time.Duration
	for _, run := range r.good() {
		slowest = max(slowest, run.Slowest)
	}
	return slowest
}

// Lost returns the most requests that any run lost.
func (r Result) Lost() int {
	lost := 0
	for _, run := range r.good() {
		lost = max(lost, run.Lost)
	}
	return lost
}

// splitBrain returns the longest time of any run that two nodes held a VIP at once.
func (r Result) splitBrain() time.Duration {
	var longest time.Duration
	for _, run := range r.good() {
		longest = max(longest, run.SplitBrain)
	}
	return longest
}

// pause returns the longest time of any run that the client did not ask.
func (r Result) pause() time.Duration {
	var longest time.Duration
	for _, run := range r.good() {
		longest = max(longest, run.Pause)
	}
	return longest
}

// Failed returns the errors of the runs that say nothing.
func (r Result) Failed() []string {
	var failed []string
	for _, run := range r.Runs {
		if run.Error != "" {
			failed = append(failed, run.Error)
		}
	}
	return failed
}

// reference returns the result that others of the scenario are compared with.
func (r *Report) reference(s Scenario) (Result, bool) {
	i := slices.IndexFunc(s.Results, func(one Result) bool { return one.Profile == r.Reference })
	if r.Reference == "" || i < 0 {
		return Result{}, false
	}
	return s.Results[i], true
}

// ratio returns the median outage of a result divided by that of the reference.
// It is not ok for the reference itself, and where either has none.
func (r *Report) ratio(s Scenario, one Result) (ratio float64, ok bool) {
	reference, ok := r.reference(s)
	if !ok || one.Profile == r.Reference {
		return 0, false
	}
	median, ok1 := one.median()
	other, ok2 := reference.median()
	if !ok1 || !ok2 || other.Outage == 0 {
		return 0, false
	}
	return float64(median.Outage) / float64(other.Outage), true
}

// Verdict is how a result compares with the aim of its scenario.
type Verdict struct {
	// By how much it is missed; 0 or less where it is met.
	Median, Worst time.Duration
	Lost          int
}

// met says whether the aim was met in every way.
func (v Verdict) met() bool { return v.Median <= 0 && v.Worst <= 0 && v.Lost <= 0 }

// Verdict compares a result with the aim. It is not ok where there is no aim for
// it, or nothing to compare.
func (s Scenario) Verdict(r Result) (v Verdict, ok bool) {
	median, ok := r.median()
	if !ok || s.Aim == nil || (s.Aim.Profile != "" && s.Aim.Profile != r.Profile) {
		return Verdict{}, false
	}
	worst, _ := r.worst()
	return Verdict{
		Median: median.Outage - s.Aim.Median,
		Worst:  worst.Outage - s.Aim.Worst,
		Lost:   r.Lost() - s.Aim.Lost,
	}, true
}

// drawn is what of a run a timeline shows.
func drawn(r Run) timeline.Run { return r.Run }
