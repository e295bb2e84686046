package pod

import "time"

// BackOff configures the delays of kubelet's restarts of a container: the first restart is
// immediate, each further one has a delay after the end of the container. The delay doubles every
// time, and is reset after a long run.
type BackOff struct {
	Initial, Max time.Duration
	// Reset is the duration of a run that resets the delay.
	Reset time.Duration
}

func kubeletBackOff() BackOff {
	return BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute, Reset: 10 * time.Minute}
}

// restarts is the state of one container. The zero value is that of a container without restarts.
type restarts struct {
	delay time.Duration
	since time.Time // time of the last restart
}

// next returns the time at which a container that ended may start again.
func (b BackOff) next(r *restarts, ended time.Time) time.Time {
	if r.delay == 0 || ended.Sub(r.since) > b.Reset {
		r.delay, r.since = b.Initial, ended
		return ended
	}
	at := ended.Add(r.delay)
	r.delay, r.since = min(2*r.delay, b.Max), at
	return at
}
