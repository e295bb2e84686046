package keepalived

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// handOver gives the VIPs on this node to peers before keepalived is stopped (hard case
// 43): without the points of its checks a peer is better, and takes the VIPs while they are
// still here, so that clients are never without one. keepalived that is told to stop takes
// the address away at once, and clients wait until a peer has it.
//
// Where no peer is better, or none is there, keepalived is stopped after a little more
// than what it takes them. A bootstrap has no checks, and stops at once; so does keepalived
// that was told to end by somebody else, as by systemd, which tells every process of a
// container.
func (j *Job) handOver() {
	d := j.decided.Load()
	if j.members.InDoubt() {
		return // nobody receives it: the holder of the VIP does not know this node
	}
	if d == nil || len(d.conf.TrackFiles) == 0 {
		return
	}
	vips, bound := awaited(d.conf)
	if here, err := job.VIPsHere(vips); err != nil || !here {
		return
	}
	var terms []vrrp.Term
	for _, f := range d.conf.TrackFiles {
		terms = append(terms, f.Term)
	}
	if err := j.checks.files.Withdraw(terms); err != nil {
		j.Log.Warn("the VIPs cannot be given away by priority: keepalived gives them away when it stops", "error", err)
		return
	}
	began := time.Now()
	gone := job.AwaitVIPs(vips, bound)
	j.Log.Info("VIPs given away before the end", "vips", vips, "gone", gone, "after", time.Since(began).Round(time.Millisecond))
}

// awaited returns the VIPs that a peer could take, and for how long to wait for it: as long
// as a backup takes that receives a lower priority, and a second for a busy network of nodes.
func awaited(conf *keepalived.Conf) (vips []netip.Addr, bound time.Duration) {
	for i := range conf.Instances {
		if in := &conf.Instances[i]; in.QuietGroup == "" { // else nobody receives it
			vips = append(vips, in.VIP.Addr())
			bound = max(bound, migration.DownTime(in)+time.Second)
		}
	}
	return vips, min(bound, job.MostPriority)
}
