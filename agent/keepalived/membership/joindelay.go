package membership

import "time"

// joinTime is how long the other nodes take, at most, to make a node a peer
// that the cluster lists from now on: the watch hands changes on every 3 s, and
// configurations are applied every 3 s.
const joinTime = 7 * time.Second

// unknownTime is for how much longer a node waits, at most, for a holder that
// does not know it. A holder that was cut off when the node came learns of it as
// soon as it reads from an API server again, within six seconds (agent/nodes).
const unknownTime = 10 * time.Second

// joinDelay keeps a node out until the others know it. In unicast mode the holder
// sends its adverts to its peers alone, so that a node which came sooner would
// hear nothing and hold the VIP beside it.
type joinDelay struct {
	known  bool      // the others know it; also from before a restart
	listed bool      // the cluster listed it at the last evaluation
	since  time.Time // it is listed since then, while it is not known
	sure   bool      // an API server or the link has confirmed known since the start
	doubt  bool      // the link has not: it may have been removed from the cluster
	unheld time.Time // while in doubt: nobody has held a VIP since then; zero if somebody does
	// operators are the peers that run OpenShift's own keepalived.
	operators operatorPeers
}

const (
	// doubtTime is how often a node in doubt polls the link.
	doubtTime = 5 * time.Second
	// unheldTime is how long nobody may hold a VIP before a node in doubt does. Others
	// are given the time to boot.
	unheldTime = time.Minute
)

// linkState is whether the holders of VIPs know this node, as far as the link shows.
type linkState int

const (
	unheld       linkState = iota // nobody answers for a VIP, nor advertises one
	knownTo                       // adverts of holders come here, so that they know this node
	unknownTo                     // somebody answers for a VIP and sends no advert here
	undetermined                  // it could not be found out
)

// restart joins once more, when the others know the node no longer.
func (a *joinDelay) restart() { a.known, a.listed, a.operators.senders = false, false, nil }

// wait returns for how much longer the node is to stay out. A node that is not
// listed is out for another reason, and joins when it is. An agent that just
// started has not read the list yet, which is no reason to forget that the others
// know this node; one that was listed and is not any more has to join again.
//
// stale means that no API server vouches for the list: the copy that an agent has on
// disk at its start may be from before the node was removed from the cluster (hard case 36). Then
// the link decides. If a node that does not know this one holds a VIP, this one is in
// doubt: it stays out until an API server has answered, or adverts of the holder come. A
// VIP that nobody holds for a moment ends no doubt; where nobody does for unheldTime, the
// node is better than none. If at first nobody holds it, or who does knows the node, it
// takes part as before (hard case 19).
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
		before, a.doubt, a.sure = false, false, true // it joins
	case !stale:
		a.sure = true
	case a.doubt || !a.sure:
		switch state := link(); {
		case state == knownTo:
			a.known, a.doubt = a.known || a.doubt, false
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

// left returns for how much longer the others may not know a node that joins. After
// joinTime the link is polled, too, but not for ever: a holder may never learn of it.
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

// alone reports whether nobody has held a VIP for long. state is that of the link now.
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

// suspect has the node in doubt, also when the link had confirmed that the others know it.
func (a *joinDelay) suspect() { a.sure, a.doubt, a.known, a.unheld = false, true, false, time.Time{} }
