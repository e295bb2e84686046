package tickle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/ticker"
)

// Intervals of sharing, which a test shortens.
var (
	// listEvery is the interval at which a holder lists its clients. A connection younger
	// than that is not known to its peers when it dies.
	listEvery = 4 * time.Second
	// resendAfter is the interval at which a peer gets an unchanged list again, which a
	// restart may have lost, and one that failed repeatedly is tried again.
	resendAfter = 10 * time.Second
)

const (
	// rate bounds the data sent by a holder, in bytes per second: with many clients and
	// peers it sends less often.
	rate = 250_000
	// maxAge is how long a received list counts.
	maxAge = 5 * time.Minute
)

// rounds are the delays, after a VIP was acquired, at which its clients are sent
// segments, and the sequence numbers. By the first, a living previous holder has sent its
// answers in transit. Later ones are for clients that had not learned the new location of
// the VIP; their numbers differ because a client may happen to expect one.
var rounds = []struct {
	after  time.Duration
	number uint32
}{{250 * time.Millisecond, 0}, {time.Second, 1 << 30}, {2500 * time.Millisecond, 2 << 30}}

// Tickler implements the package for a node.
type Tickler struct {
	// Port is the port that receives lists.
	Port int
	Log  *slog.Logger

	mu    sync.Mutex
	vips  []VIP
	here  []netip.Addr              // addresses of the node
	known map[netip.Addr]clientList // by holder
	wake  chan struct{}

	ctx  context.Context // Run's; nil before and after
	all  sync.WaitGroup
	sent atomic.Int64

	listing, serving, sending, failing logging.Transitions
}

// New returns a Tickler that does nothing before Run.
func New(port int, log *slog.Logger) *Tickler {
	return &Tickler{Port: port, Log: log, known: map[netip.Addr]clientList{}, wake: make(chan struct{}, 1)}
}

// Follow sets the VIPs that the node may hold.
func (t *Tickler) Follow(vips []VIP) {
	t.mu.Lock()
	t.vips = vips
	maps.DeleteFunc(t.known, func(peer netip.Addr, _ clientList) bool { return !t.isPeer(peer) })
	t.mu.Unlock()
	t.notify()
}

// Observe sets the addresses of the node, and the VIPs among them acquired just now.
func (t *Tickler) Observe(here, came []netip.Addr) {
	t.mu.Lock()
	t.here = here
	for _, vip := range came {
		if all := t.clientLists(vip); t.ctx != nil && len(all) > 0 {
			t.all.Go(func() { t.tickle(vip, all) })
		}
	}
	t.mu.Unlock()
	t.notify()
}

func (t *Tickler) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Known returns the number of clients of a VIP in lists of other holders.
func (t *Tickler) Known(vip netip.Addr) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ports := range t.clientLists(vip) {
		n += count(ports)
	}
	return n
}

// clientList is the last list received from a holder.
type clientList struct {
	clients Clients
	at      time.Time
}

// clientLists returns the recent lists of a VIP's clients, one per holder. They do not
// replace each other: the VIP may come to this node through a third one that held it too
// briefly to receive the list of the first.
func (t *Tickler) clientLists(vip netip.Addr) (out []map[uint16][]netip.AddrPort) {
	for _, from := range t.known {
		if ports := from.clients[vip]; len(ports) > 0 && time.Since(from.at) < maxAge {
			out = append(out, ports)
		}
	}
	return out
}

// Sent returns the number of clients that were sent segments, counted again each time a
// VIP was acquired.
func (t *Tickler) Sent() int { return int(t.sent.Load()) }

// Run works until ctx ends.
func (t *Tickler) Run(ctx context.Context) {
	t.mu.Lock()
	t.ctx = ctx
	t.mu.Unlock()
	t.all.Go(func() { t.serve(ctx) })
	t.share(ctx)
	t.mu.Lock()
	t.ctx = nil
	t.mu.Unlock()
	t.all.Wait()
}

// tickle sends segments to the clients of an acquired VIP.
func (t *Tickler) tickle(vip netip.Addr, all []map[uint16][]netip.AddrPort) {
	t.mu.Lock()
	ctx := t.ctx
	t.mu.Unlock()
	if ctx == nil {
		return
	}
	began := time.Now()
	clients := 0
	for _, ports := range all {
		clients += count(ports)
	}
	t.sent.Add(int64(clients))
	for _, r := range rounds {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.after - time.Since(began)):
		}
		if !t.holds(vip) {
			return
		}
		var err error
		for _, ports := range all {
			err = errors.Join(err, tickle(ctx, vip, ports, r.number))
		}
		t.sending.Warn(t.Log, err, "cannot notify clients of an acquired VIP: those that only listen may wait", "clients of acquired VIPs notified again")
	}
	t.Log.Info("clients of an acquired VIP notified", "vip", vip, "clients", clients)
}

func (t *Tickler) holds(vip netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.here, vip)
}

// share sends the lists of clients to peers while this node holds VIPs.
func (t *Tickler) share(ctx context.Context) {
	tick := ticker.New(listEvery)
	defer tick.Stop()
	s := shareState{t: t, peers: map[peer]*sender{}}
	defer s.all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-tick.C:
		}
		if s.turn(ctx) {
			tick.Next()
		}
	}
}

// shareState is owned by share.
type shareState struct {
	t     *Tickler
	all   sync.WaitGroup
	peers map[peer]*sender
	due   time.Time
}

// turn sends due lists. It reports whether another turn is needed without a change: while
// this node holds a VIP with peers.
func (s *shareState) turn(ctx context.Context) (again bool) {
	t := s.t
	t.mu.Lock()
	vips, here := t.vips, t.here
	t.mu.Unlock()
	peers := peersOf(vips, here)
	maps.DeleteFunc(s.peers, func(p peer, to *sender) bool {
		gone := !slices.Contains(peers, p)
		if gone {
			to.stop()
		}
		return gone
	})
	if len(peers) == 0 {
		s.due = time.Time{}
		return false
	}
	now := time.Now()
	if now.Before(s.due) {
		return true
	}
	clients, err := clientsOf(vips, here)
	t.listing.Warn(t.Log, err, "cannot list clients of VIPs: those that only listen may wait after a power loss", "clients of VIPs listed again")
	if err != nil {
		return true
	}
	messages, size := map[bool][]byte{true: clients.encode(true), false: clients.encode(false)}, 0
	for _, p := range peers {
		if s.peers[p] == nil {
			s.peers[p] = newSender(ctx, p, t.Port, &s.all)
		}
		message := messages[p.to.Is4()]
		s.peers[p].send(message, now)
		size += len(message)
	}
	pace := max(listEvery, time.Duration(size)*time.Second/rate)
	s.due = now.Add(pace - listEvery/4) // ticks are aligned, and may come a little early
	t.failing.Warn(t.Log, s.unreachable(), "cannot send lists of clients to peers: clients that only listen may wait when these acquire a VIP", "lists of clients sent to all peers again")
	return true
}

// unreachable returns an error that names the peers that failed repeatedly.
func (s *shareState) unreachable() error {
	var names []string
	for p, to := range s.peers {
		if to.failed() {
			names = append(names, p.to.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("no answer at the port for clients: %s", names)
}
