package keepalived

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// handOver moves the VIPs on this node to peers before keepalived stops (hard case 43):
// without the points of its checks a peer has the higher priority and acquires the VIPs
// while they are still here, so clients are never without one. A keepalived that stops
// removes the address at once, and clients wait until a peer has it.
//
// Without a better peer, keepalived stops a little after the time a takeover would need.
// A bootstrap has no checks and stops at once, as does a keepalived that something else
// stopped, such as systemd, which signals every process of a container.
func (j *Job) handOver() {
	d := j.decided.Load()
	if j.members.InDoubt() {
		return // no peer receives it: the holder of the VIP does not know this node
	}
	if d == nil || len(d.conf.TrackFiles) == 0 {
		return
	}
	vips, bound := awaited(d.conf)
	if here, err := job.VIPsHere(vips); err != nil || !here {
		return
	}
	terms := lists.Map(d.conf.TrackFiles, func(f keepalived.TrackFile) vrrp.Term { return f.Term })
	if err := j.files.Withdraw(terms); err != nil {
		j.Log.Warn("cannot hand over VIPs by priority: keepalived releases them when it stops", "error", err)
		return
	}
	began := time.Now()
	gone := job.AwaitVIPs(vips, bound)
	j.Log.Info("VIPs handed over before the end", "vips", vips, "gone", gone, "after", time.Since(began).Round(time.Millisecond))
}

// awaited returns the VIPs that a peer could acquire, and how long to wait for that: the
// down time of a backup that receives a lower priority, and a second for a busy network.
func awaited(conf *keepalived.Conf) (vips []netip.Addr, bound time.Duration) {
	for i := range conf.Instances {
		if in := &conf.Instances[i]; in.QuietGroup == "" { // else no peer receives it
			vips = append(vips, in.VIP.Addr())
			bound = max(bound, migration.DownTime(in)+time.Second)
		}
	}
	return vips, min(bound, job.MostPriority)
}
