package client

import (
	"context"
	"time"
)

// Intervals of heartbeats, as kubelet renews the lease of its node (k8s.io/component-helpers,
// apimachinery/lease), but for the time between two: kubelet's is 10 seconds, and a shorter one
// shows the delay sooner.
const (
	heartbeatEvery   = time.Second
	heartbeatTimeout = 10 * time.Second
	heartbeatTries   = 5
)

// startHeartbeat starts a client that renews a lease. A late renewal is a delay.
func startHeartbeat(ctx context.Context, c *instance) error {
	l, err := c.newLease(heartbeatTimeout)
	if err != nil {
		return err
	}
	c.run(l.dialer, func() {
		for n := 1; ctx.Err() == nil; n++ {
			due := time.Now()
			c.waits.expect(n, due)
			for !l.tryRenew(ctx) && sleep(ctx, heartbeatEvery) {
			}
			if ctx.Err() == nil {
				c.waits.complete(n)
			}
			sleep(ctx, time.Until(due.Add(heartbeatEvery)))
		}
	})
	return nil
}

// tryRenew renews in a few tries, and closes its connections before each but the first two, as
// kubelet does.
func (l *lease) tryRenew(ctx context.Context) bool {
	for try := range heartbeatTries {
		if l.renew(ctx) == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if try > 0 {
			l.dialer.CloseAll()
		}
	}
	return false
}
