package membership

import "time"

// joinTime bounds how long the other nodes take to make a newly listed node a peer: the
// watch passes changes on every 3 s, and configurations are applied every 3 s.
const joinTime = 7 * time.Second

// unknownTime bounds how much longer a node waits for a holder that does not know it. A
// holder that was cut off when the node joined learns of it as soon as it reads from an
// API server again, within six seconds (agent/nodes).
const unknownTime = 10 * time.Second

// joinDelay keeps a node out until the others know it. In unicast mode the holder sends
// its adverts only to its peers, so that a node that joined sooner would receive nothing
// and hold the VIP, too.
type joinDelay struct {
	known  bool      // the others know the node; kept over restarts
	listed bool      // the cluster listed the node at the last evaluation
	since  time.Time // when an unknown node was first listed
	sure   bool      // an API server or the link confirmed known since the start
	doubt  bool      // the link did not: the node may have been removed from the cluster
	unheld time.Time // while in doubt: since when no node holds a VIP; zero if one does
	// operators are the peers that run OpenShift's own keepalived.
	operators operatorPeers
}

const (
	// doubtTime is the interval at which a node in doubt polls the link.
	doubtTime = 5 * time.Second
	// unheldTime is how long a VIP must be without a holder before a node in doubt
	// acquires it. Other nodes get the time to boot.
	unheldTime = time.Minute
)

// linkState is the knowledge of this node by the holders of VIPs, as the link shows it.
type linkState int

const (
	unheld       linkState = iota // no host answers for a VIP, or advertises one
	knownTo                       // adverts of holders arrive: they know this node
	unknownTo                     // a host answers for a VIP, and no advert arrives
	undetermined                  // an error
)

// restart begins a new join delay, when the others no longer know the node.
func (a *joinDelay) restart() { a.known, a.listed, a.operators.senders = false, false, nil }

// wait returns how much longer the node stays out. An unlisted node is out for another
// reason, and joins when it is listed. An agent that just started has not read the list
// yet, so that known is kept; a node that was listed and no longer is has to join again.
//
// stale means that no API server vouches for the list: the copy on disk may be older than
// the node's removal from the cluster (hard case 36). Then the link decides. If a node
// that does not know this one holds a VIP, this one is in doubt: it stays out until an
// API server answers, or adverts of the holder arrive. A VIP without a holder for a
// moment ends no doubt; after unheldTime without one, this node is better than none. If
// at first no node holds it, or the holder knows this node, it takes part as before (hard
// case 19).
func (a *joinDelay) wait(now time.Time, unregistered, stale bool, link func() linkState) time.Duration {
	before := a.listed
	a.listed = !unregistered
	switch {
	case unregistered && before:
		a.known = false
		return 0
	case unregistered:
		return 0
	case !stale && a.doubt:
		before, a.doubt, a.sure = false, false, true // joins
	case !stale:
		a.sure = true
	case a.doubt || !a.sure:
		switch state := link(); {
		case state == knownTo:
			before, a.doubt = before && !a.doubt, false // it joins: the holder may be the first to know it again
		case a.doubt && a.alone(now, state):
			a.known, a.doubt = true, false
		case state == unknownTo || a.doubt:
			a.doubt, a.known = true, false
			return doubtTime
		}
		a.sure = true
	}
	if a.known {
		return 0
	}
	if !before {
		a.since = now
	}
	left := a.left(now, link)
	a.known = left == 0
	return left
}

// left returns the remaining delay of a joining node. After joinTime the link is polled,
// too, but not forever: a holder may never learn of the node.
func (a *joinDelay) left(now time.Time, link func() linkState) time.Duration {
	if left := joinTime - now.Sub(a.since); left > 0 {
		return left
	}
	before := now.Add(-unknownTime)
	if before.Sub(a.since) >= joinTime && a.operators.left(before, a.since) == 0 {
		return 0
	}
	state, slow := link(), a.operators.left(now, a.since)
	switch {
	case slow > 0 && len(a.operators.silent()) > 0:
		return min(slow, doubtTime)
	case state == unknownTo:
		return time.Second
	}
	return 0
}

// alone reports whether no node has held a VIP for unheldTime. state is the current one.
func (a *joinDelay) alone(now time.Time, state linkState) bool {
	switch {
	case state != unheld:
		a.unheld = time.Time{}
	case a.unheld.IsZero():
		a.unheld = now
	default:
		return now.Sub(a.unheld) >= unheldTime
	}
	return false
}

// suspect puts the node in doubt, even if the link had confirmed that the others know it.
func (a *joinDelay) suspect() { a.sure, a.doubt, a.known, a.unheld = false, true, false, time.Time{} }
