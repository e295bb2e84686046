package keepalived

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/vipgen/vipgen/templates/keepalived"
)

// answerEvery bounds how often a claim of a VIP is answered.
const answerEvery = 50 * time.Millisecond

// defence has the holder of a VIP answer a host that claims it, at once: a node that was
// removed from the cluster while no API server could tell it gives way to that (hard case 51),
// and neighbours learn again where the VIP is. keepalived itself announces a VIP every 30 s.
type defence struct {
	claims *rivals
	garp   *garp

	mu        sync.Mutex
	instances map[netip.Addr]keepalived.Instance
	answered  map[netip.Addr]time.Time
}

// follow defends the VIPs of unicast instances. With multicast nobody knows who takes part.
func (d *defence) follow(instances []keepalived.Instance) {
	own := map[netip.Addr]keepalived.Instance{}
	var known []keepalived.Instance
	for _, i := range instances {
		if len(i.Peers) > 0 {
			own[i.VIP.Addr()] = i
			known = append(known, i)
		}
	}
	d.mu.Lock()
	d.instances, d.answered = own, map[netip.Addr]time.Time{}
	d.mu.Unlock()
	d.claims.follow(known)
}

// answer announces a claimed VIP while it is on this node. Peers are not answered: they hear
// this node's keepalived, and take the VIP rightly when it stands still.
func (d *defence) answer(vip netip.Addr, link string, from net.HardwareAddr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.instances[vip]
	if !ok || time.Since(d.answered[vip]) < answerEvery || isPeer(link, from, i.Peers) {
		return
	}
	d.answered[vip] = time.Now()
	d.garp.answer(vip)
}

// isPeer reports whether the kernel knows a link address as that of a peer: a holder
// sends to its peers all the time.
func isPeer(link string, at net.HardwareAddr, peers []netip.Addr) bool {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return false
	}
	list, err := netlink.NeighList(l.Attrs().Index, netlink.FAMILY_ALL)
	return err == nil && slices.ContainsFunc(list, func(n netlink.Neigh) bool {
		ip, _ := netip.AddrFromSlice(n.IP)
		return bytes.Equal(n.HardwareAddr, at) && slices.Contains(peers, ip.Unmap())
	})
}
