package keepalived

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unsafe"

	net4 "golang.org/x/net/ipv4"
	net6 "golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/trouble"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// way is one of the two ways of electing that a node tells apart.
type way int

const (
	neither way = iota
	oldWay
	newWay
)

// pair is a VRRP instance in both ways.
type pair struct {
	name     string
	old, new keepalived.Instance
}

// wire hears the adverts of peers, whichever way keepalived has them itself. That
// is the one thing that nodes which differ in the list of nodes, in their clocks or
// in the API server that they read have in common.
type wire struct {
	log *slog.Logger
	// changed is told of the first advert of a way of an instance, and when those of a
	// node that has moved go on.
	changed func()

	trouble trouble.Trouble

	mu        sync.Mutex
	pairs     []pair
	ways      string       // what the pairs tell apart
	from      []netip.Addr // peers
	heard     map[string]map[way]time.Time
	sequences map[netip.Addr]sequence // of adverts of the new way, by sender
	ears      map[ear]context.CancelFunc
}

// ear is where it listens.
type ear struct {
	link string
	ipv6 bool
}

// follow makes the wire listen to adverts of those instances from those peers, and
// forget the others; none ends it.
func (w *wire) follow(pairs []pair, from []netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ways := ""
	for _, p := range pairs {
		ways += fmt.Sprintln(p.name, p.old.Version, len(p.old.Peers) == 0, p.old.AdvertInterval, p.new.Version, len(p.new.Peers) == 0, p.new.AdvertInterval)
	}
	if ways != w.ways {
		w.heard, w.sequences, w.ways = nil, nil, ways
	}
	w.pairs, w.from = pairs, from
	wanted := map[ear]bool{}
	for _, p := range pairs {
		wanted[ear{p.new.Interface, p.new.VIP.Addr().Is6()}] = true
	}
	for e, stop := range w.ears {
		if !wanted[e] {
			stop()
			delete(w.ears, e)
		}
	}
	var errs []error
	for e := range wanted {
		if w.ears[e] != nil {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := w.listen(ctx, e); err != nil {
			stop()
			errs = append(errs, err)
			continue
		}
		if w.ears == nil {
			w.ears = map[ear]context.CancelFunc{}
		}
		w.ears[e] = stop
	}
	w.trouble.Warn(w.log, errors.Join(errs...), "cannot hear how other nodes elect", "can hear how other nodes elect")
}

// instances are those whose adverts it is to hear.
func (w *wire) instances() (out []keepalived.Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		out = append(out, p.old, p.new)
	}
	return out
}

// last gives when an advert of a way of an instance was heard last; the zero time
// for never.
func (w *wire) last(instance string, of way) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[instance][of]
}

// any gives when an advert of a way was heard last, of whichever instance.
func (w *wire) any(of way) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ways := range w.heard {
		if t := ways[of]; t.After(last) {
			last = t
		}
	}
	return last
}

// listen hears all adverts on a link until ctx ends. It joins the groups that
// adverts in multicast mode go to (RFC 9568, sections 5.1.1.2 and 5.1.2.2).
func (w *wire) listen(ctx context.Context, e ear) error {
	link, err := net.InterfaceByName(e.link)
	if err != nil {
		return err
	}
	network, any, group := "ip4:112", "0.0.0.0", vrrpGroup4
	if e.ipv6 {
		network, any, group = "ip6:112", "::", vrrpGroup6
	}
	c, err := net.ListenPacket(network, any)
	if err != nil {
		return fmt.Errorf("listening for adverts on %s: %w", e.link, err)
	}
	read, err := reader(c, e.ipv6)
	if err == nil {
		err = join(c, link, group)
	}
	if err != nil {
		c.Close()
		return fmt.Errorf("listening for adverts on %s: %w", e.link, err)
	}
	waited(c) // the first question has the kernel keep the time
	context.AfterFunc(ctx, func() { c.Close() })
	go func() {
		for packet := make([]byte, 1500); ; {
			p, err := read(packet)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil: // as of a link that went down
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			case p.link == link.Index && !waited(c):
				w.note(e, p, time.Now())
			}
		}
	}()
	return nil
}

func join(c net.PacketConn, link *net.Interface, group netip.Addr) error {
	to := &net.IPAddr{IP: group.AsSlice()}
	if group.Is6() {
		return net6.NewPacketConn(c).JoinGroup(link, to)
	}
	return net4.NewPacketConn(c).JoinGroup(link, to)
}

// reader reads adverts from a raw socket; the zero value for other packets.
func reader(c net.PacketConn, ipv6 bool) (read func([]byte) (heardPacket, error), err error) {
	if ipv6 {
		p := net6.NewPacketConn(c)
		return func(b []byte) (heardPacket, error) {
			n, cm, from, err := p.ReadFrom(b)
			if err != nil || cm == nil {
				return heardPacket{}, err
			}
			return newHeard(b[:n], from, cm.Dst, cm.IfIndex, cm.HopLimit), nil
		}, p.SetControlMessage(net6.FlagDst|net6.FlagInterface|net6.FlagHopLimit, true)
	}
	p := net4.NewPacketConn(c)
	return func(b []byte) (heardPacket, error) {
		n, cm, from, err := p.ReadFrom(b)
		if err != nil || cm == nil {
			return heardPacket{}, err
		}
		return newHeard(b[:n], from, cm.Dst, cm.IfIndex, cm.TTL), nil
	}, p.SetControlMessage(net4.FlagDst|net4.FlagInterface|net4.FlagTTL, true)
}

// staleTime is how old an advert may be that is read now. Those that came while the
// agent was stopped say how the others elected then.
const staleTime = time.Second

// waited says whether the packet that was read last had come long before.
func waited(c net.PacketConn) bool {
	raw, err := c.(*net.IPConn).SyscallConn()
	if err != nil {
		return false
	}
	var came unix.Timespec
	var failed unix.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCGSTAMPNS, uintptr(unsafe.Pointer(&came)))
	})
	return err == nil && failed == 0 && time.Since(time.Unix(came.Unix())) > staleTime
}

// heardPacket is an advert. The zero value is none.
type heardPacket struct {
	from      netip.Addr
	multicast bool
	link      int
	ttl       int // or hop limit
	version   int
	router    int
	priority  int
	interval  time.Duration
	vip       netip.Addr // the first
}

// newHeard reads a packet of the protocol 112: RFC 3768 section 5.1, RFC 9568
// section 5.2.
func newHeard(b []byte, from net.Addr, to net.IP, link, ttl int) (p heardPacket) {
	source, ok := from.(*net.IPAddr)
	if !ok || len(b) < 12 || b[0]&0xf != 1 {
		return heardPacket{}
	}
	p = heardPacket{multicast: to.IsMulticast(), link: link, ttl: ttl, version: int(b[0] >> 4), router: int(b[1]), priority: int(b[2])}
	p.from, _ = netip.AddrFromSlice(source.IP)
	p.from = p.from.Unmap()
	if p.version == 2 {
		p.interval = time.Duration(b[5]) * time.Second
	} else {
		p.interval = time.Duration(int(b[4]&0xf)<<8|int(b[5])) * 10 * time.Millisecond
	}
	length := 4
	if p.from.Is6() {
		length = 16
	}
	if len(b) >= 8+length {
		p.vip, _ = netip.AddrFromSlice(b[8 : 8+length])
	}
	return p
}

// note takes in an advert. The last one of a holder that gives a VIP away counts
// for nothing.
func (w *wire) note(e ear, p heardPacket, now time.Time) {
	w.mu.Lock()
	known := slices.Contains(w.from, p.from) || p.from.Is6() && p.from.IsLinkLocalUnicast() && p.multicast
	fresh := false
	for _, x := range w.pairs {
		if !known || p.priority == 0 || e.link != x.new.Interface || p.router != x.new.RouterID || p.vip != x.new.VIP.Addr() {
			continue
		}
		is := x.wayOf(p)
		if is == neither {
			continue
		}
		if w.heard == nil {
			w.heard = map[string]map[way]time.Time{}
		}
		if w.heard[x.name] == nil {
			w.heard[x.name] = map[way]time.Time{}
		}
		fresh = fresh || now.Sub(w.heard[x.name][is]) > quietTime
		if is == newWay {
			fresh = w.count(p.from, now, x.new.Interval()) || fresh
		}
		w.heard[x.name][is] = now
	}
	w.mu.Unlock()
	if fresh {
		w.changed()
	}
}

// sequence are adverts of the new way that one node sends without a break.
type sequence struct {
	first, last time.Time
	interval    time.Duration
	count       int
}

// goesOn says that they are no few packets, which anybody can have sent.
func (s sequence) goesOn() bool { return s.count >= 3 && s.last.Sub(s.first) >= 2*s.interval }

// maxSequences bounds the senders that are told apart: link-local ones can be anybody's.
const maxSequences = 256

// count takes in an advert of the new way, and says whether the sender's go on from now
// on.
func (w *wire) count(from netip.Addr, now time.Time, interval time.Duration) bool {
	if w.sequences == nil || len(w.sequences) >= maxSequences {
		w.sequences = map[netip.Addr]sequence{}
	}
	before := w.sequences[from]
	after := before
	if now.Sub(before.last) > max(heardTime, 3*interval) {
		after = sequence{first: now}
	}
	after.last, after.interval, after.count = now, interval, after.count+1
	w.sequences[from] = after
	return after.goesOn() && !before.goesOn()
}

// goesOn says whether a node goes on sending adverts of the new way.
func (w *wire) goesOn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sequences {
		if s.goesOn() && now.Sub(s.last) < heardTime {
			return true
		}
	}
	return false
}

// quietTime is for how long no advert came before one that is news: longer than the
// interval of any profile, so that a holder that goes on is none.
const quietTime = 1500 * time.Millisecond

// wayOf says which way an advert is. Ways that VRRP itself does not tell apart, as
// VRRPv3 of classic and fast in IPv6, differ in how often adverts come. One from beyond
// the link is of no way that sends them with the full TTL: no move follows it.
func (x *pair) wayOf(p heardPacket) way {
	is := func(i *keepalived.Instance) bool {
		return p.version == i.Version && p.multicast == (len(i.Peers) == 0) && (p.ttl == 255 || !p.multicast && !i.FullTTL)
	}
	old, fresh := is(&x.old), is(&x.new)
	switch {
	case old && fresh:
		a, b := (p.interval - x.old.Interval()).Abs(), (p.interval - x.new.Interval()).Abs()
		switch {
		case a < b:
			return oldWay
		case b < a:
			return newWay
		}
	case old:
		return oldWay
	case fresh:
		return newWay
	}
	return neither
}
