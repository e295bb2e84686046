package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// claimKept is the time between two ARP or neighbour advertisements that count as one holding, if
// no advertisements for the VIP are sent. Clients resolve a holder's address again within that time
// (arp(7), locktime and base_reachable_time).
const claimKept = time.Second

// Speaker is a source of advertisements.
type Speaker struct {
	Node    string
	Adverts int
	Last    vrrp.Advert
	At      time.Duration // of the last one
}

type speaker struct {
	node   string
	source netip.Addr
	router uint8
}

// Speakers returns the sources of advertisements, sorted by node, address and router ID.
func (w *Watch) Speakers() []Speaker {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Speaker
	for _, s := range w.speakers {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Speaker) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Last.Source.Compare(b.Last.Source), cmp.Compare(a.Last.RouterID, b.Last.RouterID))
	})
	return all
}

// record records the claims in a packet that a node sent.
func (w *Watch) record(node string, p packet, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.advert == nil {
		w.claim(node, p.claimed, at, claimKept)
		return
	}
	k := speaker{node, p.advert.Source, p.advert.RouterID}
	if w.speakers[k] == nil {
		w.speakers[k] = &Speaker{Node: node}
	}
	s := w.speakers[k]
	s.Adverts++
	s.Last, s.At = *p.advert, at
	for _, vip := range p.advert.VIPs {
		if p.advert.Priority == 0 {
			w.capture.end(holding{vip, node}, at)
		} else {
			w.claim(node, vip, at, p.advert.DownInterval())
		}
	}
}

func (w *Watch) claim(node string, vip netip.Addr, at, keep time.Duration) {
	if w.vips[vip] {
		w.capture.claim(holding{vip, node}, at, keep)
	}
}
