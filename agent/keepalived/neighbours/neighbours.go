// Package neighbours keeps the hosts on a node's links informed about its VIPs: it
// announces acquired VIPs, watches and answers claims of other hosts, makes peers known
// to each other, and limits the queues for dead ones.
package neighbours

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// Neighbours are the hosts on the node's links.
type Neighbours struct {
	queues    queues
	announcer *announcer
	defence   *defence
}

// New returns Neighbours that store the previous queue limits in a file, and call claimed for every
// claim of a defended VIP by another host.
func New(file string, claimed func(vip netip.Addr), log *slog.Logger) *Neighbours {
	a := newAnnouncer(log)
	return &Neighbours{queues: queues{file: file, log: log}, announcer: a, defence: newDefence(a, claimed, log)}
}

// Limit limits the queues for dead peers of these instances, and restores all other
// limits.
func (n *Neighbours) Limit(instances []keepalived.Instance) { n.queues.limit(instances) }

// Defend answers other hosts that claim VIPs of these instances.
func (n *Neighbours) Defend(instances []keepalived.Instance) { n.defence.follow(instances) }

// Announce announces VIPs for a while, as long as they are on this node.
func (n *Neighbours) Announce(vips []netip.Addr) { n.announcer.announce(vips) }

// Run announces until ctx ends.
func (n *Neighbours) Run(ctx context.Context) { n.announcer.run(ctx) }
