package membership

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// listenTime bounds the wait for adverts of a holder: as many intervals as a backup
// waits, one more, and time for an answer on the link.
func listenTime(i keepalived.Instance) time.Duration {
	return max(5*i.Interval(), 500*time.Millisecond)
}

// pollHolders returns the VIPs of unicast instances that another node answers for on the
// link without sending adverts to this node: that holder does not know this node, which
// would hold the VIP, too. It also returns the senders of adverts to any instance. It
// takes listenTime, less if adverts arrive. nodes are all other nodes. An error leaves a
// holder undetermined.
func pollHolders(instances []keepalived.Instance, nodes []v1alpha1.Peer) (vips, from []netip.Addr, err error) {
	instances = slices.DeleteFunc(slices.Clone(instances), func(i keepalived.Instance) bool { return len(i.Peers) == 0 })
	senders, unknown := make([]netip.Addr, len(instances)), make([]bool, len(instances))
	began := time.Now()
	var all sync.WaitGroup
	for n, i := range instances {
		c, e := listenFor(i)
		if e != nil {
			err = errors.Join(err, e)
			unknown[n] = true
			continue
		}
		defer c.Close()
		all.Go(func() { senders[n] = receive(c, i, nodes) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	solicitAgain(instances, began, done)
	<-done
	for n, i := range instances {
		if senders[n].IsValid() {
			from = append(from, senders[n])
			continue
		}
		if unknown[n] {
			continue
		}
		is, e := neighbours.Answered(i.Interface, i.VIP.Addr())
		if err = errors.Join(err, e); is {
			vips = append(vips, i.VIP.Addr())
		}
	}
	return vips, from, err
}

// listenFor listens for the adverts of an instance, and resolves its VIP on the link.
func listenFor(i keepalived.Instance) (*listener.Listener, error) {
	vip := i.VIP.Addr()
	l, err := listener.AtAddress(i.Source)
	if err != nil {
		return nil, err
	}
	if err := neighbours.Solicit(i.Interface, vip); err != nil {
		l.Close()
		return nil, fmt.Errorf("resolving %v: %w", vip, err)
	}
	return l, nil
}

const (
	// solicitEvery is the interval at which a VIP is resolved. The kernel retries only
	// after a second (RetransTimer, RFC 4861, section 10), longer than the wait here: a
	// single lost packet, or a holder that has not joined the group of its new address
	// yet, would look like no holder.
	solicitEvery = 100 * time.Millisecond
	// solicitations is the number of attempts: the last one leaves time for an answer.
	solicitations = 4
)

// solicitAgain resolves unanswered VIPs again until done is closed.
func solicitAgain(instances []keepalived.Instance, began time.Time, done <-chan struct{}) {
	tick := time.NewTicker(solicitEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if time.Since(began) > solicitations*solicitEvery+solicitEvery/2 {
			return
		}
		for _, i := range instances {
			if is, err := neighbours.Answered(i.Interface, i.VIP.Addr()); !is && err == nil {
				neighbours.Solicit(i.Interface, i.VIP.Addr()) // an error leaves the VIP unanswered
			}
		}
	}
}

// receive returns the sender of an advert of an instance that arrives in time, if any.
func receive(l *listener.Listener, i keepalived.Instance, nodes []v1alpha1.Peer) netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), listenTime(i))
	defer cancel()
	for {
		a, err := l.Receive(ctx)
		switch {
		case err != nil: // the deadline, or a removed address
			return netip.Addr{}
		case accepts(&i, nodes, a):
			return a.Source
		}
	}
}

// accepts reports whether keepalived, behind its guard, would accept an advert for an
// instance: RFC 9568, section 7.1, and RFC 3768, section 7.1, which requires the same
// interval.
func accepts(i *keepalived.Instance, nodes []v1alpha1.Peer, a listener.Received) bool {
	if a.Version != i.Version || int(a.RouterID) != i.RouterID || len(a.VIPs) == 0 || a.VIPs[0] != i.VIP.Addr() || a.Version == 2 && a.Interval != i.Interval() {
		return false
	}
	return slices.ContainsFunc(Senders(i, nodes), func(s guard.Sender) bool {
		return (len(s.From) == 0 || slices.Contains(s.From, a.Source)) && (!s.FullTTL || a.TTL == 255)
	})
}
