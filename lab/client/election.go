package client

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Of leader elections, as kube-controller-manager and kube-scheduler have them.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// startElection starts a leader that has no rival. What is late is a renewal; the
// election is lost when none succeeds within the deadline, and won again then.
func startElection(ctx context.Context, c *starting) error {
	config, dialer := c.config(c.from)
	inner, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, c.name,
		resourcelock.ResourceLockConfig{Identity: c.name}, config, renewDeadline)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{Interface: inner, waits: c.waits}, Name: c.name,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					c.waits.loses()
				}
			},
		},
	})
	if err != nil {
		return err
	}
	c.waits.expect(1, time.Now())
	c.run(dialer, func() {
		for ctx.Err() == nil { // a controller is started again
			elector.Run(ctx)
		}
	})
	return nil
}

// lock is the lease of an election.
type lock struct {
	resourcelock.Interface
	*waits
	renewals int // of one goroutine
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renewed(l.Interface.Create(ctx, r))
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renewed(l.Interface.Update(ctx, r))
}

func (l *lock) renewed(err error) error {
	if err == nil {
		l.renewals++
		l.came(l.renewals)
		l.expect(l.renewals+1, time.Now().Add(retryPeriod))
	}
	return err
}
