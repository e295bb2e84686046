package vrrp

import "time"

// ProbeTiming is the timing of the agent's probes of a service on its node, which
// determines how soon a priority changes.
type ProbeTiming struct {
	// Interval is the time between the starts of two probes, Confirm the one while a
	// change awaits confirmation. Timeout bounds a probe.
	Interval, Confirm, Timeout time.Duration
	// Times is the number of consecutive probes that make a change.
	Times int
}

// Timings of probes.
var (
	// HAProxyProbe is for HAProxy, through which all clients of the API VIP go. It
	// answers from memory over a connection that is kept open, in less than a
	// millisecond. Two consecutive probes over the time-out are a failure
	// (docs/concepts.md).
	HAProxyProbe = ProbeTiming{Interval: 100 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 100 * time.Millisecond, Times: 2}
	// ServiceProbe is for other services that answer from memory.
	ServiceProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: time.Second, Times: 2}
	// APIServerProbe is for services that may be slow for a while, during the start of a
	// node or an etcd election.
	APIServerProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 3 * time.Second, Times: 2}
	// BootstrapProbe is APIServerProbe for the bootstrap's API server, whose end moves
	// the VIP away: one that hangs for 15 seconds and then answers is not gone (hard case
	// 45).
	BootstrapProbe = ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: 15 * time.Second, Times: 2}
)

// UnreadyAfter is how long a node must see no ready API server before its load balancer
// path counts as failed. An etcd election, or anything else that affects all API servers
// at once, is over by then, and has moved no VIP: no node was better (hard case 45). A
// node that alone sees no API server loses the VIP then.
const UnreadyAfter = 30 * time.Second

// RestartTime is how long a crashed HAProxy has to serve again before it counts as failed: VIPs stay
// meanwhile.
const RestartTime = time.Second

// Refused bounds the time to notice a service that refuses connections.
func (p ProbeTiming) Refused() time.Duration { return p.Interval + time.Duration(p.Times-1)*p.Confirm }

// Hung bounds the time to notice a service that does not answer.
func (p ProbeTiming) Hung() time.Duration { return p.Interval + time.Duration(p.Times)*p.Timeout }

// BootstrapGoneAfter is how long the bootstrap's services must be away to count as gone,
// and its API server ready to count as back. An API server that shuts down reports that
// in readyz, and serves for much longer.
const BootstrapGoneAfter = 3 * time.Second
