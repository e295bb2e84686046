package client

import (
	"context"
	"time"
)

// Of leader elections, as kube-controller-manager and kube-scheduler have them.
const (
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// electionTimeout is that of a request (resourcelock.NewFromKubeconfig).
	electionTimeout = renewDeadline / 2
)

// startElection starts a leader that has no rival. What is late is a renewal; the
// election is lost when none succeeds within the deadline, and won again then.
//
// It does what client-go's tools/leaderelection does: that package would link the clients of
// all of Kubernetes' APIs into vipgen, which doubles its size.
func startElection(ctx context.Context, c *starting) error {
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
					c.waits.loses()
				}
				renewed = l.renewUntil(ctx)
			}
			if renewed {
				c.waits.came(n)
				n++
				c.waits.expect(n, time.Now().Add(retryPeriod))
			}
		}
	})
	return nil
}

// renewUntil tries until ctx ends, and says whether it did.
func (l *lease) renewUntil(ctx context.Context) bool {
	for l.renew(ctx) != nil {
		if !sleep(ctx, retryPeriod) {
			return false
		}
	}
	return true
}
