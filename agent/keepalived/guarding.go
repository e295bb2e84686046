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

// guardGroups returns the permitted senders of each instance. nodes are all other nodes
// of the cluster.
func guardGroups(instances []keepalived.Instance, nodes []v1alpha1.Peer) (out []guard.Group) {
	for i := range instances {
		x := &instances[i]
		out = append(out, guard.Group{
			Interface: x.Interface, IPv6: x.VIP.Addr().Is6(), RouterID: x.RouterID, Senders: membership.Senders(x, nodes),
		})
	}
	return out
}

// guardLag is how long after a reload the previous senders stay permitted: many times
// what keepalived takes to reload on a busy node.
const guardLag = 3 * time.Second

// guardState keeps the guard in step with keepalived: senders of the new configuration are
// permitted before keepalived has it, and senders of the old one until keepalived has
// dropped it.
type guardState struct {
	table guard.Guard
	log   *slog.Logger

	mu      sync.Mutex
	wanted  []guard.Group // of the configuration
	earlier []guard.Group // of earlier configurations
	until   time.Time     // when earlier expires; zero: never
	dropped uint64        // count logged last
	logged  time.Time
	failing logging.Transitions
}

// begin removes the rules of an earlier agent, whose list of peers may be outdated.
func (g *guardState) begin() { g.report(g.table.Remove()) }

// admit permits the senders of the configuration that keepalived gets next.
func (g *guardState) admit(groups []guard.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.earlier = guard.Merge(g.earlier, g.wanted)
	g.wanted, g.until = guard.Merge(groups), time.Time{}
	g.report(g.table.Place(slices.Concat(g.wanted, g.earlier)))
}

// applied starts the lag after which earlier senders are dropped: keepalived runs the
// configuration admitted last.
func (g *guardState) applied(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = now.Add(guardLag)
}

// poll drops expired senders, restores missing rules, and logs dropped packets at most
// once a minute.
func (g *guardState) poll(now time.Time) {
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
		err = g.table.Poll()
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

// droppedEvery is the least interval between log lines about dropped packets.
const droppedEvery = time.Minute

// end removes the rules once keepalived has stopped.
func (g *guardState) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted != nil {
		g.report(g.table.Remove())
	}
	g.wanted, g.earlier, g.until = nil, nil, time.Time{}
}

func (g *guardState) report(err error) {
	g.failing.Error(g.log, err, "VRRP packets not filtered: any host that reaches this node can take over its VIPs", "VRRP packets filtered again")
}

func (g *guardState) state() state.Guard {
	is, restored := g.table.InPlace()
	return state.Guard{InPlace: is, Restored: restored, Dropped: g.table.Dropped()}
}
