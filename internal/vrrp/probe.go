package vrrp

import "time"

// ProbeTiming is how the agent probes a service of its node, which decides how soon a
// priority changes.
type ProbeTiming struct {
	// Interval is the time between the starts of two probes, Confirm that while a
	// change waits for its confirmation. Timeout bounds a probe.
	Interval, Confirm, Timeout time.Duration
	// Times is how many probes in a row make a change.
	Times int
}

// How services are probed.
var (
	// HAProxyProbe is for HAProxy, which all clients of the API VIP go through. It answers
	// from memory, and over a connection that is kept open: an answer takes less
	// than a millisecond. Two that take longer than its time-out, in a row, are no
	// answer (docs/concepts.md).
	HAProxyProbe = ProbeTiming{Interval: 100 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 100 * time.Millisecond, Times: 2}
	// ServiceProbe is for other services that answer from memory.
	ServiceProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: time.Second, Times: 2}
	// APIServerProbe is for services that may be slow for a while, when a node starts or
	// etcd elects.
	APIServerProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 3 * time.Second, Times: 2}
	// BootstrapProbe is APIServerProbe for the bootstrap's API server, whose end takes the
	// VIP from it: one that stands still for 15 seconds, and answers then, is not gone (hard
	// case 45).
	BootstrapProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 15 * time.Second, Times: 2}
)

// UnreadyAfter is how long no API server may be ready, as seen from a node, before the
// node's load balancer path counts for nothing. An election of etcd, or anything else that
// befalls all API servers at once, is over by then, and has moved no VIP: nobody was better
// (hard case 45). A node that alone sees no API server loses the VIP then.
const UnreadyAfter = 30 * time.Second

// Refused is how long it takes at most to notice a service that refuses.
func (p ProbeTiming) Refused() time.Duration { return p.Interval + time.Duration(p.Times-1)*p.Confirm }

// Hung is how long it takes at most to notice a service that does not answer.
func (p ProbeTiming) Hung() time.Duration { return p.Interval + time.Duration(p.Times)*p.Timeout }

// BootstrapGoneAfter is how long the bootstrap's services must be away to be gone, and its
// API server ready to be back. An API server that shuts down says so in readyz and goes on
// serving for much longer than that.
const BootstrapGoneAfter = 3 * time.Second
