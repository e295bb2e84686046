package client

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// lease is a Lease that one client holds.
type lease struct {
	client rest.Interface
	dialer *connrotation.Dialer
	name   string
	held   *coordinationv1.Lease // nil if unknown
}

// newLease returns a lease whose requests have a timeout.
func (c *instance) newLease(timeout time.Duration) (*lease, error) {
	client, dialer, err := c.client(c.from, "/apis", coordinationv1.SchemeGroupVersion, timeout)
	return &lease{client: client, dialer: dialer, name: c.name}, err
}

// renew renews the lease, and creates it if there is none.
func (l *lease) renew(ctx context.Context) error {
	if l.held == nil {
		held, err := l.do(ctx, l.client.Get().Name(l.name))
		if apierrors.IsNotFound(err) {
			held, err = l.do(ctx, l.client.Post().Body(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}}))
		}
		if err != nil {
			return err
		}
		l.held = held
	}
	fresh := l.held.DeepCopy()
	fresh.Spec.HolderIdentity = &l.name
	now := metav1.NowMicro()
	fresh.Spec.RenewTime = &now
	held, err := l.do(ctx, l.client.Put().Name(l.name).Body(fresh))
	switch {
	case err == nil:
		l.held = held
	case apierrors.IsConflict(err):
		l.held = nil // it was renewed, but the answer was lost
	}
	return err
}

func (l *lease) do(ctx context.Context, r *rest.Request) (*coordinationv1.Lease, error) {
	out := new(coordinationv1.Lease)
	return out, r.Namespace(namespace).Resource("leases").Do(ctx).Into(out)
}

// sleep waits for d and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
