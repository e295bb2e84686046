package neighbours

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/internal/netdump"
)

// An address acquired by the node is announced four times a second for seven seconds, which no
// switch minds. keepalived announces it at once and after a second; a neighbour that
// meanwhile receives a late answer of the previous holder would send there until then. A previous
// holder that was cut off learns from it that there is another one (hard case 51); after six
// seconds it announces the VIP itself, as its list of nodes is stale (agent/nodes).
const (
	announceEvery = 250 * time.Millisecond
	announceTimes = 28
)

// announcer sends gratuitous ARP, and for IPv6 unsolicited neighbour advertisements.
type announcer struct {
	log *slog.Logger

	mu      sync.Mutex
	left    map[netip.Addr]int // remaining announcements, by address
	wake    chan struct{}
	sending logging.Transitions
}

// newAnnouncer returns an announcer; run sends.
func newAnnouncer(log *slog.Logger) *announcer {
	return &announcer{log: log, left: map[netip.Addr]int{}, wake: make(chan struct{}, 1)}
}

// announce announces VIPs for a while, as long as they are on this node.
func (a *announcer) announce(vips []netip.Addr) {
	a.mu.Lock()
	for _, vip := range vips {
		a.left[vip] = announceTimes
	}
	a.mu.Unlock()
	a.notify()
}

// announceOnce announces a VIP once, if it is on this node.
func (a *announcer) announceOnce(vip netip.Addr) {
	a.mu.Lock()
	a.left[vip] = max(a.left[vip], 1)
	a.mu.Unlock()
	a.notify()
}

func (a *announcer) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *announcer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		if a.send() {
			timer.Reset(announceEvery)
		}
	}
}

// send announces each VIP with announcements left, and reports whether any remain.
func (a *announcer) send() (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.left) == 0 {
		return false
	}
	list, err := netdump.Addresses()
	if err != nil {
		err = fmt.Errorf("reading the addresses: %w", err)
	}
	here := map[netip.Addr]bool{}
	for _, on := range list {
		vip := netdump.IP(on)
		if a.left[vip] == 0 {
			continue
		}
		here[vip] = true
		if failed := announceAt(on.LinkIndex, vip); failed != nil {
			err = fmt.Errorf("%s: %w", vip, failed)
		}
	}
	a.sending.Warn(a.log, err, "cannot announce VIPs: only keepalived announces them", "VIPs announced again")
	for vip, n := range a.left {
		if n--; n == 0 || !here[vip] {
			delete(a.left, vip)
		} else {
			a.left[vip] = n
		}
	}
	return len(a.left) > 0
}

func announceAt(link int, vip netip.Addr) error {
	l, err := net.InterfaceByIndex(link)
	if err != nil || len(l.HardwareAddr) != 6 { // not Ethernet: no neighbours
		return err
	}
	return arpnd.Announce(l, vip, arpnd.Forms(vip.Is6())[0])
}
