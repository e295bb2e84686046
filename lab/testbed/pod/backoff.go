package pod

import "time"

// BackOff is how kubelet spaces the restarts of a container: the first one comes
// at once, each further one at least a delay after the container ended. The delay
// doubles every time, and is forgotten after a good while.
type BackOff struct {
	Initial, Max time.Duration
	// Reset is how long a container must have run well.
	Reset time.Duration
}

func kubeletBackOff() BackOff {
	return BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute, Reset: 10 * time.Minute}
}

// restarts is the state of one container. Its zero value is that of a container
// that was never restarted.
type restarts struct {
	delay time.Duration
	since time.Time // the last restart
}

// next returns when a container that ended may start again.
func (b BackOff) next(r *restarts, ended time.Time) time.Time {
	if r.delay == 0 || ended.Sub(r.since) > b.Reset {
		r.delay, r.since = b.Initial, ended
		return ended
	}
	at := ended.Add(r.delay)
	r.delay, r.since = min(2*r.delay, b.Max), at
	return at
}
