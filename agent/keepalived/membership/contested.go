package membership

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// contested puts the node in doubt when another one holds its VIP, too, and does not give
// way (hard case 36): this node was removed from the cluster while it reached no API
// server. Of two nodes that know each other, one gives way within listenTime. contested
// returns when to evaluate again, 0 for never, and whether the node is in doubt now.
//
// The holder answers this node's announcements with its own (neighbours.Defence, hard
// case 51), so that an announcement after giveWay is proof: a peer that loses the VIP is
// gone by then. Older agents do not answer; their keepalived announces every 30 s.
func (m *Membership) contested(n *Node, now time.Time) (again time.Duration, suspected bool) {
	var watched []keepalived.Instance
	if n.Facts.Stale && !m.join.doubt {
		watched = slices.DeleteFunc(slices.Clone(n.Conf.Instances), func(i keepalived.Instance) bool { return len(i.Peers) == 0 })
	}
	m.stale.Follow(watched)
	for _, i := range watched {
		since, held := n.Since(i.VIP.Addr())
		at := m.stale.Announced(i.VIP.Addr(), since)
		if !held && m.stale.AnnouncedAfter(i.VIP.Addr(), now.Add(-time.Second)) {
			again = announcementPollEvery // this node may be acquiring the VIP, and announcements notify once a second
		}
		if !held || at.IsZero() {
			continue
		}
		left := listenTime(i) - now.Sub(at)
		if left <= 0 || m.stale.AnnouncedAfter(i.VIP.Addr(), since.Add(giveWay)) {
			m.log.Warn("another host holds a VIP of this node, and no API server lists this node", "vip", i.VIP.Addr())
			m.join.suspect()
			m.stale.Follow(nil)
			return doubtTime, true
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
