package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/internal/page/timeline"
)

// Report is a benchmark: each scenario, several times, with each profile.
type Report struct {
	Origin    Origin
	Machine   []Fact   // the machine and its versions
	Profiles  []string // such as "fast" and "classic"
	Reference string   // the entry of Profiles to compare the others with, if any
	Scenarios []Scenario
}

// Origin describes a measurement: time, vipgen's version, cluster and command. Any field may be
// empty.
type Origin struct {
	Date    time.Time `json:"date,omitzero"`
	Version string    `json:"version,omitempty"`
	Cluster string    `json:"cluster,omitempty"`
	Command string    `json:"command,omitempty"`
}

// Fact is a property of the machine or of a program, such as "cores", "2".
type Fact = page.Fact

// Scenario is a fault or change that each run executes.
type Scenario struct {
	Name    string // for programs, such as "power-loss"
	Title   string // for people, a few words
	What    string // a sentence or two
	VIP     string // that the client probes
	Aim     *Aim   // nil if none
	Results []Result
}

// Aim is the target of a scenario.
type Aim struct {
	Profile string // that it applies to; all if empty
	Median  time.Duration
	Worst   time.Duration
	Lost    int // requests, in each run
}

// Result has the runs of one profile. A scenario has one for each, in the order of Report.Profiles.
type Result struct {
	Profile       string
	NotApplicable string // reason if there are no runs
	Runs          []Run
}

// Run is one execution of a scenario. Times are relative to its start.
type Run struct {
	timeline.Run
	Outage  time.Duration // time of the client without an answer
	Lost    int           // requests without an answer
	Asked   int           // all requests
	Slowest time.Duration // slowest answer
	Pause   time.Duration // longest time between two requests, the precision of all figures
	Clients []Client      // by kind and place, without the probe
	Others  *Others       // nil unless several nodes have the VIP
	Error   string        // why the run failed, empty if it did not
}

// The data that timelines are drawn from.
type (
	Span   = timeline.Span
	Answer = timeline.Answer
	Event  = timeline.Event
)

// Others is the result of connections to nodes that the fault does not affect.
type Others struct {
	Outage      time.Duration
	Lost, Asked int
}

// Client is the result of the clients of one kind at one place.
type Client struct {
	Kind, Place string
	Count       int
	Longest     time.Duration // longest delay of an expected event or renewal
	Lost        int           // lost leader elections
	Stuck       int           // clients that did not recover before the end of the run
}

// good returns the runs that did not fail, sorted by outage, then by lost requests.
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

// median returns the run in the middle; of an even number of runs the longer of the middle two. ok
// is false without a good run.
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

// slowest returns the slowest answer of all runs.
func (r Result) slowest() time.Duration {
	var slowest time.Duration
	for _, run := range r.good() {
		slowest = max(slowest, run.Slowest)
	}
	return slowest
}

// Lost returns the maximum of lost requests in a run.
func (r Result) Lost() int {
	lost := 0
	for _, run := range r.good() {
		lost = max(lost, run.Lost)
	}
	return lost
}

// others returns the worst result of connections to other nodes; nil if there is none.
func (r Result) others() (worst *Others) {
	for _, run := range r.good() {
		if o := run.Others; o != nil && (worst == nil || o.Lost > worst.Lost) {
			worst = o
		}
	}
	return worst
}

// splitBrain returns the longest split brain of all runs.
func (r Result) splitBrain() time.Duration {
	var longest time.Duration
	for _, run := range r.good() {
		longest = max(longest, run.SplitBrain)
	}
	return longest
}

// pause returns the longest pause between two requests in all runs.
func (r Result) pause() time.Duration {
	var longest time.Duration
	for _, run := range r.good() {
		longest = max(longest, run.Pause)
	}
	return longest
}

// Failed returns the errors of the failed runs.
func (r Result) Failed() []string {
	var failed []string
	for _, run := range r.Runs {
		if run.Error != "" {
			failed = append(failed, run.Error)
		}
	}
	return failed
}

// reference returns the result to compare others of the scenario with.
func (r *Report) reference(s Scenario) (Result, bool) {
	i := slices.IndexFunc(s.Results, func(one Result) bool { return one.Profile == r.Reference })
	if r.Reference == "" || i < 0 {
		return Result{}, false
	}
	return s.Results[i], true
}

// ratio returns the median outage of a result divided by the reference's. ok is false for the
// reference itself, and where either has none.
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

// Verdict is the comparison of a result with the aim of its scenario.
type Verdict struct {
	// Median and Worst are the excess over the aim; 0 or less if it is met.
	Median, Worst time.Duration
	Lost          int
}

// met reports whether all parts of the aim were met.
func (v Verdict) met() bool { return v.Median <= 0 && v.Worst <= 0 && v.Lost <= 0 }

// Verdict compares a result with the aim. ok is false without an aim or without a good run.
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

// drawn returns the part of a run that a timeline draws.
func drawn(r Run) timeline.Run { return r.Run }
