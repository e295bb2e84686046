package keepalived

import "time"

// How the agent looks at its node, which decides how soon a priority changes.
const (
	// CheckInterval is the time between the starts of two probes of a service,
	// CheckConfirm that while a change waits for its confirmation.
	CheckInterval = 250 * time.Millisecond
	CheckConfirm  = 50 * time.Millisecond
	// CheckTimes is how many probes in a row make a change.
	CheckTimes = 2
	// QuickTimeout bounds probes of services that answer from memory,
	// PatientTimeout those of services that may be slow for a while, when a node
	// starts or etcd elects.
	QuickTimeout   = time.Second
	PatientTimeout = 3 * time.Second
)

// GoneAfter is how long the bootstrap's services must be away to be gone for
// good. An API server that shuts down says so in readyz and goes on serving for
// much longer than that.
const GoneAfter = 3 * time.Second

// RefusalNoticed is how long it takes at most to notice a service that refuses,
// HangNoticed one that does not answer within the time-out of its probe.
const RefusalNoticed = CheckInterval + (CheckTimes-1)*CheckConfirm

// HangNoticed gives the time for a service whose probes have that time-out.
func HangNoticed(timeout time.Duration) time.Duration {
	return CheckInterval + CheckTimes*timeout
}
