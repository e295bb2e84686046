// Package membership decides which VIPs a node leaves out: until the other nodes know it,
// while their adverts go elsewhere, and while another host holds a VIP, too.
package membership

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Membership tracks whether the other nodes know this one, and where. It is owned by the
// loop goroutine, except for InDoubt.
type Membership struct {
	nodes facts.Nodes // may be nil
	loop  Loop
	log   *slog.Logger

	join       joinDelay
	mismatches addressMismatches
	eligible   eligible // at the last evaluation
	sources    sources
	unknown    []netip.Addr // VIPs whose holder does not know this node, as logged last
	listening  logging.Transitions
	// alone watches claims of VIPs that the node holds although adverts go elsewhere,
	// stale those while no API server lists the node.
	alone, stale *neighbours.Claims
	reminded     time.Time   // last announcement of VIPs while stale
	poll         *time.Timer // for contested; nil before the first time
	inDoubt      atomic.Bool // copy of join.doubt
}

// Loop evaluates the membership again: soon, or at once.
type Loop interface {
	Trigger()
	Now()
}

// Node is the node to evaluate.
type Node struct {
	Facts *facts.Facts
	// Conf is the configuration, from which Membership leaves out instances.
	Conf   *keepalived.Conf
	Wanted bool
	// RemoveVIPs removes VIPs that an earlier keepalived left, while none runs.
	RemoveVIPs func()
	// Since reports whether an address is on the node, and since when.
	Since func(netip.Addr) (time.Time, bool)
}

// New returns the membership of a node. known is true if the others knew it before a restart.
func New(known bool, nodes facts.Nodes, loop Loop, log *slog.Logger) *Membership {
	return &Membership{
		nodes: nodes, loop: loop, log: log, join: joinDelay{known: known},
		alone: neighbours.NewClaims(loop.Now, log), stale: neighbours.NewClaims(loop.Now, log),
	}
}

// InDoubt reports that the node may have been removed from the cluster. Any goroutine may
// call it.
func (m *Membership) InDoubt() bool { return m.inDoubt.Load() }

// Suspend stops listening, for a node that the mode file leaves out.
func (m *Membership) Suspend() { m.alone.Follow(nil) }

// Close stops listening.
func (m *Membership) Close() {
	m.alone.Follow(nil)
	m.stale.Follow(nil)
}

// Evaluate leaves out the instances in which the other nodes do not know this one.
func (m *Membership) Evaluate(n *Node) {
	now := time.Now()
	if m.sources.moved(n.Conf.Instances) {
		// Even if the cluster lists the new address already: the others have yet to send
		// their adverts there.
		m.join.restart()
	}
	alone, again := m.leaveMismatched(n)
	link := func() linkState { return m.pollLink(n, n.Conf.Instances) }
	later, suspected := m.contested(n, now)
	m.join.operators.follow(now, m.operators(n), n.Facts.Node.Peers)
	wait, why, of := later, vrrp.LeftOutJoining, []any(nil)
	if !suspected { // else the link is polled slowly, once keepalived has ended
		wait = m.join.wait(now, n.Facts.Node.Unregistered, n.Facts.Stale, link)
	}
	if m.join.doubt {
		why = vrrp.LeftOutInDoubt
	} else if names := m.join.operators.silent(); len(names) > 0 {
		why, of = vrrp.LeftOutOperators, []any{strings.Join(names, ", ")}
	}
	m.inDoubt.Store(m.join.doubt)
	if wait > 0 && len(n.Conf.Instances) > 0 {
		n.Conf.LeaveOutAll(why, of...)
	}
	for _, w := range []time.Duration{wait, again} {
		if w > 0 {
			time.AfterFunc(w, m.loop.Trigger)
		}
	}
	if later > 0 && !suspected {
		m.pollAfter(later)
	}
	m.alone.Follow(alone)
}

// pollAfter evaluates again after a time, once, however often it is called until then.
func (m *Membership) pollAfter(d time.Duration) {
	if m.poll == nil {
		m.poll = time.AfterFunc(d, m.loop.Now)
		return
	}
	m.poll.Reset(d)
}

// Resume leaves out all instances of a bootstrap whose API server was away, once the
// cluster does without it (new nodes do not know it), or while the holder of a VIP does
// not know it.
func (m *Membership) Resume(n *Node) {
	switch {
	case n.Facts.Node.BootstrapGone:
		n.Conf.LeaveOutAll(vrrp.LeftOutBootstrapLate)
	case !n.Wanted && len(n.Conf.Instances) > 0 && m.pollLink(n, n.Conf.Instances) == unknownTo:
		n.Conf.LeaveOutAll(vrrp.LeftOutBootstrapUnknown)
		time.AfterFunc(doubtTime, m.loop.Trigger)
	}
}

// pollLink determines whether the holders of VIPs of instances know this node. keepalived
// does not run, is just starting, or has none of the instances.
func (m *Membership) pollLink(n *Node, instances []keepalived.Instance) linkState {
	if !n.Wanted {
		n.RemoveVIPs() // leftovers of an earlier keepalived would answer
	}
	vips, from, err := pollHolders(instances, n.Facts.Node.Peers)
	m.join.operators.senders = append(m.join.operators.senders, from...)
	m.listening.Warn(m.log, err, "cannot determine whether holders of VIPs know this node", "determined again whether holders of VIPs know this node")
	if len(vips) > 0 && !slices.Equal(vips, m.unknown) {
		m.log.Info("the holder of VIPs does not know this node", "vips", vips)
	}
	m.unknown = vips
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
