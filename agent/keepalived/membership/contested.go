package membership

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// contested puts the node in doubt when another one holds its VIP, too, and does not give
// way (hard case 36): this node was removed from the cluster while it reached no API
// server. contested returns when to evaluate again, 0 for never, and whether the node is in
// doubt now.
//
// This node announces its VIPs every 0.4 s while no API server lists it, and a holder that does not
// know it announces them in answer (neighbours.Defence, hard case 51). Of two nodes that know each
// other, one gives way at once, so that a claim after giveWay is proof; this node asks for one. Without
// an announcement it does not ask: the kernel of a peer whose keepalived hangs answers, too.
func (m *Membership) contested(n *Node, now time.Time) (again time.Duration, suspected bool) {
	var watched []keepalived.Instance
	if n.Facts.Stale && !m.join.doubt {
		watched = slices.DeleteFunc(slices.Clone(n.Conf.Instances), func(i keepalived.Instance) bool {
			_, held := n.Since(i.VIP.Addr())
			return len(i.Peers) == 0 || !held
		})
	}
	m.stale.Follow(watched)
	remind := now.Sub(m.reminded) >= remindEvery
	for _, i := range watched {
		vip := i.VIP.Addr()
		since, _ := n.Since(vip)
		at := m.stale.Announced(vip, since)
		switch {
		case at.IsZero():
			if remind {
				m.reminded = now
				m.stale.Announce(i)
			}
			continue
		case m.stale.ClaimedAfter(vip, at.Add(giveWay)):
			m.log.Warn("another host holds a VIP of this node, and no API server lists this node", "vip", vip)
			m.join.suspect()
			m.stale.Follow(nil)
			return doubtTime, true
		case now.Sub(at) > listenTime(i):
			m.stale.Forget(vip)
			continue
		case now.Sub(at) >= giveWay:
			m.stale.Ask(i)
		}
		again = announcementPollEvery
	}
	return again, false
}

const (
	// remindEvery is the least interval between announcements of a VIP by a node that no API server lists.
	remindEvery = 350 * time.Millisecond
	// giveWay is longer than a peer takes to receive an advert and remove the VIP, or to notice that it
	// has lost the address at which it receives adverts.
	giveWay = 300 * time.Millisecond
	// announcementPollEvery is the poll interval for claims after an announcement of the VIP by another host.
	announcementPollEvery = 50 * time.Millisecond
)
