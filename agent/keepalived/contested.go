package keepalived

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// contested puts the node in doubt when another one holds a VIP beside it and does not go
// (hard case 36): the node was removed from the cluster while no API server could tell it.
// Where both knew each other, one would have gone by the time that a holder has for its
// adverts. It gives when to look again, 0 for never, and whether the node is in doubt now.
//
// The holder answers this node's announcements with its own (defence, hard case 51), so that
// one that still comes after giveWay is enough: a peer that loses the VIP is gone by then.
// Agents of before answer nothing; their keepalived announces every 30 s.
func (j *Job) contested(d *decision, now time.Time, stale bool) (again time.Duration, suspected bool) {
	var watched []keepalived.Instance
	if stale && !j.looping.presence.join.doubt {
		watched = slices.DeleteFunc(slices.Clone(d.conf.Instances), func(i keepalived.Instance) bool { return len(i.Peers) == 0 })
	}
	j.claimants.Follow(watched)
	for _, i := range watched {
		since, held := j.record.Since(i.VIP.Addr())
		at := j.claimants.Announced(i.VIP.Addr(), since)
		if !held && j.claimants.AnnouncedAfter(i.VIP.Addr(), now.Add(-time.Second)) {
			again = lookAgain // the VIP may be coming here, and announcements are told of once a second
		}
		if !held || at.IsZero() {
			continue
		}
		left := listenTime(i) - now.Sub(at)
		if left <= 0 || j.claimants.AnnouncedAfter(i.VIP.Addr(), since.Add(giveWay)) {
			j.Log.Warn("another host holds a VIP, too, and no API server lists this node", "vip", i.VIP.Addr())
			j.looping.presence.join.suspect()
			j.claimants.Follow(nil)
			return doubtTime, true
		}
		again = lookAgain
	}
	return again, false
}

const (
	// giveWay is longer than a peer takes to hear an advert and remove the VIP.
	giveWay = 200 * time.Millisecond
	// lookAgain is the poll interval for announcements of the VIP by another host.
	lookAgain = 50 * time.Millisecond
)
