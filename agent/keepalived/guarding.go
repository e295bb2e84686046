package keepalived

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// guardGroups returns whose packets are let through to instances. nodes are all other
// nodes of the cluster.
func guardGroups(instances []keepalived.Instance, nodes []v1alpha1.Peer) (out []guard.Group) {
	for i := range instances {
		x := &instances[i]
		out = append(out, guard.Group{
			Interface: x.Interface, IPv6: x.VIP.Addr().Is6(), RouterID: x.RouterID, Senders: membership.Senders(x, nodes),
		})
	}
	return out
}

// guardLag is how long after a reload the senders of before are let through: many
// times what keepalived takes for one on a busy node.
const guardLag = 3 * time.Second

// guarding keeps the guard in step with keepalived: who is let through by the new
// configuration is so before keepalived has it, and who was let through by the old one
// until keepalived has it no more.
type guarding struct {
	table guard.Guard
	log   *slog.Logger

	mu      sync.Mutex
	wanted  []guard.Group // of the configuration
	earlier []guard.Group // of those before
	until   time.Time     // for how long the earlier count; zero: for ever
	dropped uint64        // as it was logged
	logged  time.Time
	failing logging.Transitions
}

// begin removes what an earlier agent left, whose list of peers may be old.
func (g *guarding) begin() { g.report(g.table.Remove()) }

// admit lets the senders of a configuration through that keepalived gets now.
func (g *guarding) admit(groups []guard.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.earlier = guard.Merge(g.earlier, g.wanted)
	g.wanted, g.until = guard.Merge(groups), time.Time{}
	g.report(g.table.Place(slices.Concat(g.wanted, g.earlier)))
}

// applied starts the time after which earlier senders are forgotten: keepalived runs the configuration that was admitted last.
func (g *guarding) applied(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = now.Add(guardLag)
}

// poll forgets earlier senders when they have had their time, restores rules that are gone,
// and logs when packets are dropped, at most once a minute.
func (g *guarding) poll(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted == nil {
		return
	}
	if !g.until.IsZero() && !now.Before(g.until) {
		g.earlier, g.until = nil, time.Time{}
	}
	err := g.table.Place(slices.Concat(g.wanted, g.earlier))
	if err == nil {
		err = g.table.Look()
	}
	g.report(err)
	all, list := uint64(0), g.table.Dropped()
	for _, d := range list {
		all += d.Packets
	}
	if all != g.dropped && now.Sub(g.logged) >= droppedEvery {
		g.log.Warn("dropped VRRP packets of hosts that are not in the groups of this node", "packets", all-g.dropped, "all", list)
		g.dropped, g.logged = all, now
	}
}

// droppedEvery is the least time between two log lines about dropped packets.
const droppedEvery = time.Minute

// end removes the rules: keepalived does not run.
func (g *guarding) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted != nil {
		g.report(g.table.Remove())
	}
	g.wanted, g.earlier, g.until = nil, nil, time.Time{}
}

func (g *guarding) report(err error) {
	g.failing.Error(g.log, err, "VRRP packets are not filtered: any host that reaches this node can take its VIPs from it", "VRRP packets are filtered again")
}

func (g *guarding) state() state.Guard {
	is, restored := g.table.InPlace()
	return state.Guard{InPlace: is, Restored: restored, Dropped: g.table.Dropped()}
}
