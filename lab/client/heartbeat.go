package client

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/connrotation"
)

// Of heartbeats, as kubelet renews the lease of its node (k8s.io/component-helpers,
// apimachinery/lease), but for the time from one to the next: kubelet's is 10 seconds,
// and how late the next one would be is seen sooner with less.
const (
	beatEvery   = time.Second
	beatTimeout = 10 * time.Second
	beatTries   = 5
)

// startHeartbeat starts a client that renews a lease. What is late is a renewal.
func startHeartbeat(ctx context.Context, c *starting) error {
	set, dialer, err := c.clientset(c.from, beatTimeout)
	if err != nil {
		return err
	}
	h := &heartbeat{leases: set.CoordinationV1().Leases(namespace), dialer: dialer, name: c.name}
	c.run(dialer, func() {
		for n := 1; ctx.Err() == nil; n++ {
			due := time.Now()
			c.waits.expect(n, due)
			for !h.renew(ctx) && sleep(ctx, beatEvery) {
			}
			if ctx.Err() == nil {
				c.waits.came(n)
			}
			sleep(ctx, time.Until(due.Add(beatEvery)))
		}
	})
	return nil
}

// sleep says whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// heartbeat renews a lease.
type heartbeat struct {
	leases typed.LeaseInterface
	dialer *connrotation.Dialer
	name   string
	lease  *coordinationv1.Lease // nil if it is not known
}

// renew tries some times, and closes its connections before each but the first two, as
// kubelet does.
func (h *heartbeat) renew(ctx context.Context) bool {
	for try := range beatTries {
		err := h.once(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if apierrors.IsConflict(err) {
			h.lease = nil
		}
		if try > 0 {
			h.dialer.CloseAll()
		}
	}
	return false
}

// once renews the lease, and makes it if there is none.
func (h *heartbeat) once(ctx context.Context) (err error) {
	if h.lease == nil {
		h.lease, err = h.leases.Get(ctx, h.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			h.lease, err = h.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: h.name}}, metav1.CreateOptions{})
		}
		if err != nil {
			h.lease = nil
			return err
		}
	}
	fresh := h.lease.DeepCopy()
	fresh.Spec.HolderIdentity = &h.name
	now := metav1.NowMicro()
	fresh.Spec.RenewTime = &now
	if fresh, err = h.leases.Update(ctx, fresh, metav1.UpdateOptions{}); err == nil {
		h.lease = fresh
	}
	return err
}
