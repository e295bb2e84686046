package neighbours

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// answerEvery bounds how often a claim of a VIP is answered.
const answerEvery = 50 * time.Millisecond

// defence answers hosts that claim a VIP of this node at once: a node that was removed
// from the cluster while it reached no API server gives way (hard case 51), and
// neighbours learn again where the VIP is. keepalived itself announces a VIP only every
// 30 s. It also answers those that claim the node's own address, where its peers send
// their adverts: no other host may have that one.
type defence struct {
	claims    *Claims
	announcer *announcer
	claimed   func(vip netip.Addr) // called for every claim of a VIP by another host

	mu        sync.Mutex
	instances map[netip.Addr]keepalived.Instance
	answered  map[netip.Addr]time.Time
}

func newDefence(a *announcer, claimed func(vip netip.Addr), log *slog.Logger) *defence {
	d := &defence{announcer: a, claimed: claimed, claims: NewClaims(func() {}, log)}
	d.claims.answer = d.answer
	return d
}

// follow defends the VIPs of unicast instances, also after the last peer was deleted, and the
// addresses that they send from. A new one of these is announced: another host may have claimed it
// while it was not defended, and would receive the adverts of peers. With multicast the peers are
// not known.
func (d *defence) follow(instances []keepalived.Instance) {
	own := map[netip.Addr]keepalived.Instance{}
	var known []keepalived.Instance
	var sources []netip.Addr
	for _, i := range instances {
		if i.Multicast() {
			continue
		}
		known = append(known, i)
		if i.Source.IsValid() { // there are peers
			known = append(known, keepalived.Instance{Interface: i.Interface, VIP: netip.PrefixFrom(i.Source, i.Source.BitLen())})
			sources = append(sources, i.Source)
		}
	}
	for _, i := range known {
		own[i.VIP.Addr()] = i
	}
	d.mu.Lock()
	fresh := slices.DeleteFunc(sources, func(a netip.Addr) bool { _, defended := d.instances[a]; return defended })
	d.instances, d.answered = own, map[netip.Addr]time.Time{}
	d.mu.Unlock()
	d.claims.Follow(known)
	d.announcer.announce(fresh)
}

// answer announces a claimed address while it is on this node. Peers of a VIP get no answer: they
// receive the adverts of this node, and rightly acquire the VIP when its keepalived
// hangs.
func (d *defence) answer(vip netip.Addr, link string, from net.HardwareAddr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.instances[vip]
	if i.Source.IsValid() {
		d.claimed(vip)
	}
	if !ok || time.Since(d.answered[vip]) < answerEvery || isPeer(link, from, i.Peers) {
		return
	}
	d.answered[vip] = time.Now()
	d.announcer.announceOnce(vip)
}
