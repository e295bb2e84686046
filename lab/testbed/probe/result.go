package probe

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
)

// Result is what a probe saw: every request, in the order in which they were sent.
type Result struct {
	Requests []Request
}

// Spell is a run of requests one after the other that were all answered, or all
// lost.
type Spell struct {
	From, To time.Duration // when the first and the last of them were sent
	OK       bool
	Requests int
}

// Spells returns the runs by the times of sending.
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

// Outage is the longest time, by the times of sending, from the last answered
// request before a run of lost ones to the first answered one after. It is 0 when
// nothing was lost; otherwise it is two steps of the probe at least, and between
// nothing and two steps too long. Where the probe begins or ends with lost
// requests, it is counted from the first or to the last of them.
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

// Lost returns how many requests got no answer.
func (r Result) Lost() int {
	lost := 0
	for _, s := range r.Spells() {
		if !s.OK {
			lost += s.Requests
		}
	}
	return lost
}

// Slowest returns the longest time that an answer took, from connecting on.
func (r Result) Slowest() time.Duration {
	var slowest time.Duration
	for _, q := range r.Requests {
		if q.Err == "" {
			slowest = max(slowest, q.Ended-q.Sent)
		}
	}
	return slowest
}

// Gap returns the longest time between two answers, whenever their requests were
// sent.
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

// Pause returns the longest time between two requests. Much more than the step of
// the probe means that the machine had no time for it, and that the other figures
// are no better than that.
func (r Result) Pause() time.Duration {
	return longestStep(lists.Map(r.Requests, func(q Request) time.Duration { return q.Sent }))
}

// longestStep takes sorted times.
func longestStep(times []time.Duration) time.Duration {
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i]-times[i-1])
	}
	return longest
}

// Errors counts the lost requests by why they were lost.
func (r Result) Errors() map[string]int {
	count := map[string]int{}
	for _, q := range r.Requests {
		if q.Err != "" {
			count[q.Err]++
		}
	}
	return count
}
