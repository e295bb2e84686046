package neighbours

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Claims watches the link for other hosts that claim VIPs of this node, as every new
// holder does. A node that receives no adverts learns of another holder in no other way.
type Claims struct {
	log     *slog.Logger
	changed func() // called for the first claim of a VIP, and for announcements
	// answer is called for every claim by another host, with that host's link address; it may
	// be nil.
	answer  func(vip netip.Addr, link string, from net.HardwareAddr)
	failing logging.Transitions

	mu        sync.Mutex
	listeners map[netip.Addr]*claimListener // by VIP
}

// claimListener holds the claims of one VIP.
type claimListener struct {
	link    string
	stop    context.CancelFunc
	claimed bool
	// announced is the time of the first remembered announcement: an unsolicited claim,
	// which keepalived makes when it acquires a VIP and every 30 s after. The kernel of a
	// node whose keepalived hangs makes none.
	announced time.Time
	seen      time.Time // of the last claim by another host, also in answer to Ask
	notified  time.Time // last call of changed
}

// NewClaims returns Claims that call changed for the first claim of a VIP, and once a second
// for announcements.
func NewClaims(changed func(), log *slog.Logger) *Claims { return &Claims{changed: changed, log: log} }

// Follow listens for claims of the VIPs of these instances, and of no others.
func (c *Claims) Follow(instances []keepalived.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[netip.Addr]string{}
	for _, i := range instances {
		wanted[i.VIP.Addr()] = i.Interface
	}
	for vip, l := range c.listeners {
		if wanted[vip] != l.link {
			l.stop()
			delete(c.listeners, vip)
		}
	}
	var errs []error
	for vip, link := range wanted {
		if c.listeners[vip] != nil {
			continue
		}
		l := &claimListener{link: link}
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		if err := c.listen(ctx, vip, l); err != nil {
			l.stop()
			errs = append(errs, err)
			continue
		}
		if c.listeners == nil {
			c.listeners = map[netip.Addr]*claimListener{}
		}
		c.listeners[vip] = l
	}
	c.failing.Warn(c.log, errors.Join(errs...), "cannot watch claims of VIPs by other hosts", "claims of VIPs by other hosts watched again")
}

// Claimed reports whether another host has claimed a VIP since Follow.
func (c *Claims) Claimed(vip netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	return l != nil && l.claimed
}

// Announced returns when another host first announced a VIP after since; the zero value
// if none did. It forgets announcements before since.
func (c *Claims) Announced(vip netip.Addr, since time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	if l == nil {
		return time.Time{}
	}
	if !l.announced.After(since) {
		l.announced = time.Time{}
	}
	return l.announced
}

// Forget forgets the announcements of a VIP.
func (c *Claims) Forget(vip netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.listeners[vip]; l != nil {
		l.announced = time.Time{}
	}
}

// ClaimedAfter reports whether another host claimed a VIP at that time or later.
func (c *Claims) ClaimedAfter(vip netip.Addr, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	return l != nil && !l.seen.Before(at)
}

// Ask asks the hosts of a link for the VIP of an instance, which this node has: only another host that
// has it, too, answers.
func (c *Claims) Ask(i keepalived.Instance) {
	link, err := net.InterfaceByName(i.Interface)
	if err == nil && len(link.HardwareAddr) == 6 { // not Ethernet: no neighbours
		err = arpnd.Ask(link, i.Source, i.VIP.Addr())
	}
	c.failing.Warn(c.log, err, "cannot ask the link for a VIP of this node", "link asked again for a VIP of this node")
}

// Announce announces the VIP of an instance, which this node has, once.
func (c *Claims) Announce(i keepalived.Instance) {
	link, err := net.InterfaceByName(i.Interface)
	if err == nil {
		err = announceAt(link.Index, i.VIP.Addr())
	}
	c.failing.Warn(c.log, err, "cannot announce a VIP while no API server lists this node", "VIP announced again")
}

// listen waits for claims of a VIP until ctx ends.
func (c *Claims) listen(ctx context.Context, vip netip.Addr, l *claimListener) error {
	link, err := net.InterfaceByName(l.link)
	var conn *socket.Conn
	if err == nil {
		conn, err = arpnd.Open(link, vip)
	}
	if err != nil {
		return fmt.Errorf("listening for claims of %v on %s: %w", vip, l.link, err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	go func() {
		for packet := make([]byte, 256); ; {
			n, from, err := conn.Recvfrom(ctx, packet, 0)
			claim := arpnd.Parse(packet[:max(n, 0)])
			switch at, _ := from.(*unix.SockaddrLinklayer); {
			case ctx.Err() != nil:
				return
			case errors.Is(err, unix.ENETDOWN): // it may come up again
			case err != nil:
				return
			case at != nil && at.Pkttype != unix.PACKET_OUTGOING && claim.Address == vip:
				// A switch may send back what this node has sent.
				by := net.HardwareAddr(bytes.Clone(at.Addr[:min(int(at.Halen), len(at.Addr))]))
				other := !bytes.Equal(by, link.HardwareAddr)
				c.record(l, other, claim.Unsolicited && other)
				if c.answer != nil && other {
					c.answer(vip, l.link, by)
				}
			}
		}
	}()
	return nil
}

// record records a claim by this or another host, which may be an announcement.
func (c *Claims) record(l *claimListener, other, announcement bool) {
	now := time.Now()
	c.mu.Lock()
	notify := !l.claimed
	l.claimed = true
	if other {
		l.seen = now
	}
	if announcement {
		if l.announced.IsZero() {
			l.announced = now
		}
		notify = notify || now.Sub(l.notified) >= notifyEvery
	}
	if notify {
		l.notified = now
	}
	c.mu.Unlock()
	if notify {
		c.changed()
	}
}

// notifyEvery bounds how often announcements have the node evaluated.
const notifyEvery = time.Second
