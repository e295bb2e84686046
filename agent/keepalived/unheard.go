package keepalived

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

// listenTime is how long a holder has for its adverts: as many as make a backup
// take over, and one more, and time for the link to say whose a VIP is.
func listenTime(i keepalived.Instance) time.Duration {
	return max(5*i.Interval(), 500*time.Millisecond)
}

// unheard gives the VIPs of unicast instances that another node answers for on
// the link while no advert of theirs comes here: their holder does not know this
// node, which would take them beside it. That takes as long as the holder has for
// its adverts, and no longer than an advert where they come; from are their senders, of
// any instance. nodes are all other nodes. The error says that it could not be found out.
func unheard(instances []keepalived.Instance, nodes []v1alpha1.Peer) (vips, from []netip.Addr, err error) {
	instances = slices.DeleteFunc(slices.Clone(instances), func(i keepalived.Instance) bool { return len(i.Peers) == 0 })
	heard, unknown := make([]netip.Addr, len(instances)), make([]bool, len(instances))
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
		all.Go(func() { heard[n] = hears(c, i, nodes) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	askAgain(instances, began, done)
	<-done
	for n, i := range instances {
		if heard[n].IsValid() {
			from = append(from, heard[n])
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

// listenFor listens for the adverts of an instance, and asks the link whose its VIP
// is.
func listenFor(i keepalived.Instance) (*listener.Listener, error) {
	vip := i.VIP.Addr()
	l, err := listener.AtAddress(i.Source)
	if err != nil {
		return nil, err
	}
	if err := neighbours.Solicit(i.Interface, vip); err != nil {
		l.Close()
		return nil, fmt.Errorf("asking whose %v is: %w", vip, err)
	}
	return l, nil
}

const (
	// askEvery is after what time the link is asked again whose a VIP is. The kernel
	// asks again after a second (RetransTimer, RFC 4861, section 10), which is longer than
	// is waited here: one packet that is lost, or a holder that is not yet in the group of
	// its new address, would be taken for nobody.
	askEvery = 100 * time.Millisecond
	// asks is how often: the last one has time to be answered.
	asks = 4
)

// askAgain asks the link again whose the VIPs are that nobody has answered for, until done
// is closed.
func askAgain(instances []keepalived.Instance, began time.Time, done <-chan struct{}) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if time.Since(began) > asks*askEvery+askEvery/2 {
			return
		}
		for _, i := range instances {
			if is, err := neighbours.Answered(i.Interface, i.VIP.Addr()); !is && err == nil {
				neighbours.Solicit(i.Interface, i.VIP.Addr()) // if it fails, as before it was asked
			}
		}
	}
}

// hears returns the sender of an advert of an instance that comes in time, none if none does.
func hears(l *listener.Listener, i keepalived.Instance, nodes []v1alpha1.Peer) netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), listenTime(i))
	defer cancel()
	for {
		a, err := l.Receive(ctx)
		switch {
		case err != nil: // the deadline, or an address that went meanwhile
			return netip.Addr{}
		case accepts(&i, nodes, a):
			return a.Source
		}
	}
}

// accepts says whether keepalived, behind its guard, would take an advert that comes to
// this node for one of an instance: RFC 9568, section 7.1, and RFC 3768, section 7.1,
// which wants the same interval.
func accepts(i *keepalived.Instance, nodes []v1alpha1.Peer, a listener.Received) bool {
	if a.Version != i.Version || int(a.RouterID) != i.RouterID || len(a.VIPs) == 0 || a.VIPs[0] != i.VIP.Addr() || a.Version == 2 && a.Interval != i.Interval() {
		return false
	}
	return slices.ContainsFunc(senders(i, nodes), func(s guard.Sender) bool {
		return (len(s.From) == 0 || slices.Contains(s.From, a.Source)) && (!s.FullTTL || a.TTL == 255)
	})
}

// askLink finds out whether those who hold VIPs of the instances know this node.
// keepalived does not run, or was just told to, or has none of the instances.
func (j *Job) askLink(d *decision, instances []keepalived.Instance) linkState {
	if !j.daemon.Wanted() {
		// What an earlier one left here would answer for itself.
		j.removeAll(d)
	}
	vips, from, err := unheard(instances, d.node.Peers)
	j.looping.presence.join.beside.heard = append(j.looping.presence.join.beside.heard, from...)
	j.looping.presence.hearing.Warn(j.Log, err, "cannot hear whether holders of VIPs know this node", "can hear whether holders of VIPs know this node")
	if len(vips) > 0 && !slices.Equal(vips, j.looping.presence.unknown) {
		j.Log.Info("the holder of VIPs does not know this node", "vips", vips)
	}
	j.looping.presence.unknown = vips
	switch {
	case len(vips) > 0:
		return unknownTo
	case len(from) > 0:
		return knownTo
	case err != nil:
		return undetermined
	}
	return unheld
}
