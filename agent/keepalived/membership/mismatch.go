package membership

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// mismatchTime is how long a node at least leaves out an instance whose adverts go
	// elsewhere. kubelet reports another address within seconds, but where all nodes
	// change theirs at once it may need the VIP for that.
	mismatchTime = time.Minute
	// maxTurns bounds the number of other nodes that a node lets go first.
	maxTurns = 10
)

// addressMismatches leaves out instances whose adverts go to another address, or to none
// (hard cases 15 and 37): the node would receive none, the others would drop its own, and
// it would hold the VIP, too. By instance.
type addressMismatches map[string]*addressMismatch

// addressMismatch leaves out one instance.
type addressMismatch struct {
	// pollAt is when to poll the link for the holder of the VIP; zero for an instance that the node may
	// have only now.
	pollAt time.Time
	// alone reports that the node takes part nevertheless: no other node held the VIP.
	alone bool
	// join is the delay once the others know the node again.
	join joinDelay
}

// conditions of an instance decide whether the node takes part in it.
type conditions struct {
	// reached means that the others send adverts to this node.
	reached bool
	// admitted means that the node may have an instance of the cluster since this evaluation, as its
	// labels changed: a holder sends its adverts here as soon as it knows.
	admitted bool
	// stale is as in joinDelay.
	stale bool
	// claimed means that another host claimed the VIP since the node takes part alone.
	claimed bool
	// turn delays the poll of the link, so that two nodes do not find at once that no
	// node holds the VIP.
	turn time.Duration
	link func() linkState
}

// wait returns how much longer the node leaves out an instance. Without adverts it takes
// part only while no other node does, by the link.
func (d addressMismatches) wait(now time.Time, instance string, c conditions) time.Duration {
	a := d[instance]
	if c.admitted && c.reached && a == nil && c.link() == unknownTo {
		a = &addressMismatch{join: joinDelay{sure: true}}
		d[instance] = a
	}
	switch {
	case c.reached && (a == nil || a.alone):
		delete(d, instance)
		return 0
	case c.reached:
		left := a.join.wait(now, false, c.stale, c.link)
		if left == 0 {
			delete(d, instance)
		}
		return left
	case a == nil:
		a = &addressMismatch{pollAt: now.Add(mismatchTime + c.turn)}
		d[instance] = a
	case a.alone && c.claimed:
		a.alone, a.pollAt = false, now.Add(doubtTime+c.turn)
	}
	a.join = joinDelay{sure: true}
	if left := a.pollAt.Sub(now); !a.alone && left > 0 {
		return left
	}
	if !a.alone && c.link() != unheld {
		a.pollAt = now.Add(doubtTime + c.turn)
		return doubtTime + c.turn
	}
	a.alone = true
	return 0
}

// reached reports whether the others, which see this node as self, send the adverts of an
// instance to its address. Multicast adverts reach all nodes.
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
	at, ok := self.AddressFor(i.At)
	return ok && at == i.Source && s.Hosts(&s.Groups[g], self.Role, self.Labels)
}

// leaveMismatched leaves out the instances whose adverts go elsewhere. It returns those
// that run nevertheless, and when to evaluate again; 0 for never.
func (m *Membership) leaveMismatched(n *Node) (alone []keepalived.Instance, again time.Duration) {
	before, f := m.mismatches, n.Facts
	m.mismatches = addressMismatches{}
	current := eligible{cluster: f.Cluster.Spec.Groups}
	var out, joining []string
	for _, i := range n.Conf.Instances {
		current.instances = append(current.instances, i.Name)
		if a := before[i.Name]; a != nil {
			m.mismatches[i.Name] = a
		}
		wait := m.mismatches.wait(time.Now(), i.Name, conditions{
			reached: reached(&f.Cluster.Spec, f.Self, &i), admitted: m.join.known && m.eligible.lacked(&i), stale: f.Stale, claimed: m.alone.Claimed(i.VIP.Addr()),
			turn: time.Duration(turnOf(f.Node)) * (listenTime(i) + time.Second),
			link: func() linkState { return m.pollLink(n, []keepalived.Instance{i}) },
		})
		switch {
		case wait > 0:
			if m.mismatches[i.Name].pollAt.IsZero() {
				joining = append(joining, i.Name)
			} else {
				out = append(out, i.Name)
			}
			if again == 0 || wait < again {
				again = wait
			}
		case m.mismatches[i.Name] != nil:
			alone = append(alone, i)
		}
	}
	if !f.Node.Unregistered { // a node that the cluster lists joins, with all instances
		m.eligible = current
	}
	n.Conf.LeaveOut(out, vrrp.LeftOutMismatch)
	n.Conf.LeaveOut(joining, vrrp.LeftOutJoining)
	return alone, again
}

// eligible are the instances that the node may have in a cluster, by name.
type eligible struct {
	cluster   []v1alpha1.Group
	instances []string
}

// lacked reports whether the cluster has the VIP of an instance that the node may not have.
func (e *eligible) lacked(i *keepalived.Instance) bool {
	return !slices.Contains(e.instances, i.Name) && slices.ContainsFunc(e.cluster, func(g v1alpha1.Group) bool { return slices.Contains(g.VIPs, i.VIP.Addr()) })
}

// turnOf returns the rank of a node among the others, by name.
func turnOf(n *v1alpha1.Node) (turn int) {
	for _, p := range n.Peers {
		if p.Name < n.Name && turn < maxTurns {
			turn++
		}
	}
	return turn
}

// Lost reports whether adverts of running instances go elsewhere now that the others see
// a node differently.
func Lost(s *v1alpha1.ClusterConfigSpec, before, now v1alpha1.Peer, instances []keepalived.Instance) bool {
	return slices.ContainsFunc(instances, func(i keepalived.Instance) bool {
		return reached(s, before, &i) && !reached(s, now, &i)
	})
}

// LostSource reports whether an instance has a unicast source address that the node lost.
func LostSource(instances []keepalived.Instance, have []netip.Addr) bool {
	return slices.ContainsFunc(instances, func(i keepalived.Instance) bool {
		return len(i.Peers) > 0 && !slices.Contains(have, i.Source)
	})
}

// sources are the addresses at which the others know the node.
type sources map[sourceKey]netip.Addr

// sourceKey is an instance and its network: a migration may change the
// network, and the others know the node at both addresses.
type sourceKey struct {
	instance string
	network  netip.Prefix
}

// moved stores the addresses of unicast instances, and reports whether one changed. A
// link that was down for a while changes none.
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
