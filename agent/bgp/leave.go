package bgp

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// settleFor is how long a change of the announcements gets until all routers use it: many
// times what the routers of a rack take.
const settleFor = time.Second

// leave ends announcements such that no request is lost while another node serves: routers
// first get a worse preference, so that new connections go elsewhere while this node still
// answers, then the withdrawal, and then the end of the sessions. Other jobs wait for the
// VIPs to leave (hard case 43).
func (j *Job) leave() {
	if len(j.announced) > 0 && j.facts != nil {
		j.leaving = true
		j.Log.Info("leaving: routers are to use other nodes", "vips", len(j.announced))
		j.turn()
		time.Sleep(settleFor)
	}
	s := &state.BGP{}
	if j.facts != nil {
		s.Mode = j.facts.Cluster.Spec.RoutedBy()
	}
	if len(j.announced) > 0 {
		j.apply(s)
		time.Sleep(settleFor)
	}
	j.stopSpeaker()
	j.unnumbered.Keep(nil)
	j.held = map[netip.Addr]time.Time{}
	j.apply(&state.BGP{})
	j.publish(&state.BGP{})
}
