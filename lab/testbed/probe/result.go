package probe

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
)

// Result holds the requests of a probe, in the order of sending.
type Result struct {
	Requests []Request
}

// Spell is a run of consecutive requests that were all answered, or all lost.
type Spell struct {
	From, To time.Duration // times of sending of the first and the last
	OK       bool
	Requests int
}

// Spells returns the spells in the order of sending.
func (r Result) Spells() []Spell {
	var spells []Spell
	for _, q := range r.Requests {
		ok := q.Err == ""
		if len(spells) == 0 || spells[len(spells)-1].OK != ok {
			spells = append(spells, Spell{From: q.Sent, OK: ok})
		}
		s := &spells[len(spells)-1]
		s.To = q.Sent
		s.Requests++
	}
	return spells
}

// Outage returns the longest time from the last answered request before a spell of lost ones to the
// first answered one after it, by the times of sending. It is 0 if no request was lost, else at
// least two steps of the probe, and too long by at most two steps. If the probe starts or ends with
// lost requests, the outage starts with the first or ends with the last of them.
func (r Result) Outage() time.Duration {
	var longest time.Duration
	spells := r.Spells()
	for i, s := range spells {
		if s.OK {
			continue
		}
		from, to := s.From, s.To
		if i > 0 {
			from = spells[i-1].To
		}
		if i+1 < len(spells) {
			to = spells[i+1].From
		}
		longest = max(longest, to-from)
	}
	return longest
}

// Lost returns the number of requests without an answer.
func (r Result) Lost() int {
	lost := 0
	for _, s := range r.Spells() {
		if !s.OK {
			lost += s.Requests
		}
	}
	return lost
}

// Slowest returns the slowest answer, from the start of connecting.
func (r Result) Slowest() time.Duration {
	var slowest time.Duration
	for _, q := range r.Requests {
		if q.Err == "" {
			slowest = max(slowest, q.Ended-q.Sent)
		}
	}
	return slowest
}

// Gap returns the longest time between two answers, in the order of the answers.
func (r Result) Gap() time.Duration {
	var answers []time.Duration
	for _, q := range r.Requests {
		if q.Err == "" {
			answers = append(answers, q.Ended)
		}
	}
	slices.Sort(answers)
	return longestStep(answers)
}

// Pause returns the longest time between two requests. Much more than the step of the probe means
// that the machine was too busy, and that the other figures are no more precise.
func (r Result) Pause() time.Duration {
	return longestStep(lists.Map(r.Requests, func(q Request) time.Duration { return q.Sent }))
}

// longestStep expects sorted times.
func longestStep(times []time.Duration) time.Duration {
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i]-times[i-1])
	}
	return longest
}

// Errors returns the number of lost requests by error.
func (r Result) Errors() map[string]int {
	count := map[string]int{}
	for _, q := range r.Requests {
		if q.Err != "" {
			count[q.Err]++
		}
	}
	return count
}
