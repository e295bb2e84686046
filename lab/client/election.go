package client

import (
	"context"
	"time"
)

// Intervals of leader elections, as of kube-controller-manager and kube-scheduler.
const (
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// electionTimeout is the timeout of a request (resourcelock.NewFromKubeconfig).
	electionTimeout = renewDeadline / 2
)

// startElection starts a leader without a rival. A late renewal is a delay. The election is lost if
// no renewal succeeds within the deadline; the leader then runs for election again.
//
// It behaves as client-go's tools/leaderelection, which would link the clients of all Kubernetes
// APIs into vipgen and double its size.
func startElection(ctx context.Context, c *instance) error {
	l, err := c.newLease(electionTimeout)
	if err != nil {
		return err
	}
	c.waits.expect(1, time.Now())
	c.run(l.dialer, func() {
		for n := 1; ctx.Err() == nil; sleep(ctx, retryPeriod) {
			renewing, cancel := context.WithTimeout(ctx, renewDeadline)
			renewed := l.renewUntil(renewing)
			cancel()
			if !renewed {
				if n > 1 && ctx.Err() == nil {
					c.waits.lose()
				}
				renewed = l.renewUntil(ctx)
			}
			if renewed {
				c.waits.complete(n)
				n++
				c.waits.expect(n, time.Now().Add(retryPeriod))
			}
		}
	})
	return nil
}

// renewUntil retries until ctx ends, and reports whether it succeeded.
func (l *lease) renewUntil(ctx context.Context) bool {
	for l.renew(ctx) != nil {
		if !sleep(ctx, retryPeriod) {
			return false
		}
	}
	return true
}
