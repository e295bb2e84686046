package nodes

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// handings runs a pace over changes at the given times since the start.
func handings(p pace, changes []time.Duration) (at []time.Duration) {
	start := time.Unix(1000, 0)
	var first, last, handed time.Time
	flush := func(until time.Time) {
		if first.IsZero() {
			return
		}
		if due := p.due(first, last, handed); due.Before(until) {
			first, handed = time.Time{}, due
			at = append(at, due.Sub(start))
		}
	}
	for _, c := range changes {
		now := start.Add(c)
		flush(now)
		last = now
		if first.IsZero() {
			first = now
		}
	}
	flush(start.Add(time.Hour))
	return at
}

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	p := pace{quiet: 250 * ms, max: 3000 * ms}
	for name, c := range map[string]struct{ changes, want []time.Duration }{
		"one":             {[]time.Duration{0}, []time.Duration{250 * ms}},
		"two together":    {[]time.Duration{0, 200 * ms}, []time.Duration{450 * ms}},
		"two far apart":   {[]time.Duration{0, 10_000 * ms}, []time.Duration{250 * ms, 10_250 * ms}},
		"soon after one":  {[]time.Duration{0, 1000 * ms}, []time.Duration{250 * ms, 3250 * ms}},
		"never quiet":     {[]time.Duration{0, 200 * ms, 400 * ms, 600 * ms, 800 * ms}, []time.Duration{1050 * ms}},
		"later than that": {[]time.Duration{0, 3100 * ms}, []time.Duration{250 * ms, 3350 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, c.want, handings(p, c.changes))
		})
	}
}

func TestHardCase20Pace(t *testing.T) {
	p := pace{quiet: 250 * time.Millisecond, max: 3 * time.Second}
	for _, spacing := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 240 * time.Millisecond, 260 * time.Millisecond} {
		var changes []time.Duration
		for i := range 250 {
			changes = append(changes, time.Duration(i)*spacing)
		}
		end := changes[len(changes)-1]
		got := handings(p, changes)
		if most := int(end/p.max) + 2; len(got) > most {
			t.Errorf("%v apart: handed on %d times, more than %d", spacing, len(got), most)
		}
		if last := got[len(got)-1]; last < end || last > end+p.max {
			t.Errorf("%v apart: the last change at %v was handed on at %v", spacing, end, last)
		}
	}
}
