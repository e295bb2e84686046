package keepalived

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// mismatchTime is how long a node stays out, at least, of an instance whose adverts
	// go elsewhere. kubelet reports another address within seconds, but where all nodes
	// have another one at once it may need the VIP to do so.
	mismatchTime = time.Minute
	// maxTurns bounds for how many others a node waits that may be out as well.
	maxTurns = 10
)

// addressMismatches keeps a node out of instances whose adverts the others send elsewhere, or
// to nobody (hard cases 15 and 37): it would hear nothing, and they would take none of
// its own, so that it held the VIP beside them. By instance.
type addressMismatches map[string]*addressMismatch

// addressMismatch is that of a node from an instance.
type addressMismatch struct {
	// ask is when to ask the link who holds the VIP.
	ask time.Time
	// alone says that the node takes part all the same: nobody else held the VIP.
	alone bool
	// join is for when the others know it again.
	join joinDelay
}

// situation is how things stand with an instance.
type situation struct {
	// reached says that the others send its adverts to this node.
	reached bool
	// stale is as in joinDelay.
	stale bool
	// claimed says that another host on the link has said that it has the VIP since the
	// node takes part alone.
	claimed bool
	// turn is how much later than others this node asks the link, so that two do not
	// find at once that nobody holds the VIP.
	turn time.Duration
	link func() linkState
}

// wait says for how much longer the node is to stay out of an instance. Where its adverts
// do not come, it takes part only while nobody else does, as far as the link says.
func (d addressMismatches) wait(now time.Time, instance string, s situation) time.Duration {
	a := d[instance]
	switch {
	case s.reached && (a == nil || a.alone):
		delete(d, instance)
		return 0
	case s.reached:
		left := a.join.wait(now, false, s.stale, s.link)
		if left == 0 {
			delete(d, instance)
		}
		return left
	case a == nil:
		a = &addressMismatch{ask: now.Add(mismatchTime + s.turn)}
		d[instance] = a
	case a.alone && s.claimed:
		a.alone, a.ask = false, now.Add(doubtTime+s.turn)
	}
	a.join = joinDelay{sure: true}
	if left := a.ask.Sub(now); !a.alone && left > 0 {
		return left
	}
	if !a.alone && s.link() != unheld {
		a.ask = now.Add(doubtTime + s.turn)
		return doubtTime + s.turn
	}
	a.alone = true
	return 0
}

// reached says whether the others, who see this node as self, send the adverts of an
// instance to where it listens. Those of multicast instances reach everybody.
func reached(s *v1alpha1.ClusterConfigSpec, self v1alpha1.Peer, i *keepalived.Instance) bool {
	if len(i.Peers) == 0 {
		return true
	}
	g := slices.IndexFunc(s.Groups, func(g v1alpha1.Group) bool {
		return g.VirtualRouterID == i.RouterID && slices.Contains(g.VIPs, i.VIP.Addr())
	})
	if g < 0 {
		return false
	}
	at, ok := vrrp.AddressOf(s, &s.Groups[g], self, i.At)
	return ok && at == i.Source
}

// leaveMismatched leaves out the instances whose adverts go elsewhere. It gives those that run
// all the same, and when to look again; 0 for never.
func (j *Job) leaveMismatched(d *decision, f *facts.Facts) (alone []keepalived.Instance, again time.Duration) {
	before, out := j.looping.presence.mismatches, []string(nil)
	j.looping.presence.mismatches = addressMismatches{}
	for _, i := range d.conf.Instances {
		if a := before[i.Name]; a != nil {
			j.looping.presence.mismatches[i.Name] = a
		}
		wait := j.looping.presence.mismatches.wait(time.Now(), i.Name, situation{
			reached: reached(&f.Cluster.Spec, f.Self, &i), stale: f.Stale, claimed: j.rivals.Claimed(i.VIP.Addr()),
			turn: time.Duration(turnOf(f.Node)) * (listenTime(i) + time.Second),
			link: func() linkState { return j.askLink(d, []keepalived.Instance{i}) },
		})
		switch {
		case wait > 0:
			out = append(out, i.Name)
			if again == 0 || wait < again {
				again = wait
			}
		case j.looping.presence.mismatches[i.Name] != nil:
			alone = append(alone, i)
		}
	}
	d.without(out, whyMismatch)
	return alone, again
}

// whyMismatch is why a node stays out of instances.
const whyMismatch = "the cluster lists this node at an address, or in a role, that it does not have"

// turnOf is the place of a node among the others, by name.
func turnOf(n *v1alpha1.Node) (turn int) {
	for _, p := range n.Peers {
		if p.Name < n.Name && turn < maxTurns {
			turn++
		}
	}
	return turn
}

// lost says whether the others have come to see this node in another way, so that
// adverts of instances that run go elsewhere from now on.
func (j *Job) lost() bool {
	if j.Source.Nodes == nil {
		return false
	}
	self := j.Source.Nodes.Current().Self
	d := j.shared.decided()
	return d != nil && slices.ContainsFunc(d.conf.Instances, func(i keepalived.Instance) bool {
		spec := &d.cluster.Spec
		return reached(spec, d.self, &i) && !reached(spec, self, &i)
	})
}

// deaf says whether adverts to one of the instances, which are unicast, go to an
// address that is not among those that the node has now.
func deaf(instances []keepalived.Instance, have []netip.Addr) bool {
	return slices.ContainsFunc(instances, func(i keepalived.Instance) bool {
		return len(i.Peers) > 0 && !slices.Contains(have, i.Source)
	})
}

// sources are the addresses at which the others know the node.
type sources map[sourceKey]netip.Addr

// sourceKey is an instance, and where the node finds the others: at a move to other VRRP
// settings that may change, and they know it at both addresses.
type sourceKey struct {
	instance string
	network  netip.Prefix
}

// moved notes where unicast instances are heard from now on, and says whether one of
// them was at another address before. An address that only went away for a while, as
// with a link that was down, is no other one.
func (s *sources) moved(instances []keepalived.Instance) (moved bool) {
	if *s == nil {
		*s = sources{}
	}
	for _, i := range instances {
		if len(i.Peers) == 0 {
			continue
		}
		key := sourceKey{i.Name, i.At.Network}
		was, known := (*s)[key]
		moved = moved || known && was != i.Source
		(*s)[key] = i.Source
	}
	return moved
}
