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
// The holder announces the VIP in answer to this node's announcements (neighbours.Defence, hard
// case 51), or every 30 s as keepalived does. Of two nodes that know each other, one gives way at
// once, so that a claim after giveWay is proof; this node asks for one. Without an announcement it
// does not ask: the kernel of a peer whose keepalived hangs answers, too.
func (m *Membership) contested(n *Node, now time.Time) (again time.Duration, suspected bool) {
	var watched []keepalived.Instance
	if n.Facts.Stale && !m.join.doubt {
		watched = slices.DeleteFunc(slices.Clone(n.Conf.Instances), func(i keepalived.Instance) bool { return len(i.Peers) == 0 })
	}
	m.stale.Follow(watched)
	for _, i := range watched {
		vip := i.VIP.Addr()
		since, held := n.Since(vip)
		at := m.stale.Announced(vip, since)
		if !held && m.stale.AnnouncedAfter(vip, now.Add(-time.Second)) {
			again = announcementPollEvery // this node may be acquiring the VIP, and announcements notify once a second
		}
		if !held || at.IsZero() {
			continue
		}
		switch claimed := m.stale.ClaimedAfter(vip, at.Add(giveWay)); {
		case claimed:
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
	// giveWay is longer than a peer takes to receive an advert and remove the VIP.
	giveWay = 200 * time.Millisecond
	// announcementPollEvery is the poll interval for announcements of the VIP by another host.
	announcementPollEvery = 50 * time.Millisecond
)
