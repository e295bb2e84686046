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

const (
	// every is how often a holder looks who its clients are. A connection that is younger
	// is not known to its peers when it dies.
	every = 4 * time.Second
	// rate bounds what a holder sends, in bytes a second: with many clients and peers it
	// looks less often.
	rate = 250_000
	// unchanged is how often peers are told what they know, as they may have restarted, and
	// how often those are tried that do not answer.
	unchanged = 10 * time.Second
	// forget is how long what a holder told counts.
	forget = 5 * time.Minute
)

// rounds are when clients are sent segments after their VIP was seen here, and the
// sequence number. By the first, a holder that lives has sent the answers that were on
// their way. Later ones are for clients that had not learned where the VIP is, and have
// other numbers, as one may be what a client expects by chance.
var rounds = []struct {
	after  time.Duration
	number uint32
}{{250 * time.Millisecond, 0}, {time.Second, 1 << 30}, {2500 * time.Millisecond, 2 << 30}}

// Tickler does for a node what the package is about.
type Tickler struct {
	// Port is where peers are told.
	Port int
	Log  *slog.Logger

	mu    sync.Mutex
	vips  []VIP
	here  []netip.Addr        // addresses of the node
	known map[netip.Addr]told // by who told it
	wake  chan struct{}

	ctx  context.Context // of Run
	all  sync.WaitGroup
	sent atomic.Int64

	listing, serving, sending, telling logging.Transitions
}

// New gives a Tickler that does nothing before Run.
func New(port int, log *slog.Logger) *Tickler {
	return &Tickler{Port: port, Log: log, known: map[netip.Addr]told{}, wake: make(chan struct{}, 1)}
}

// Follow says which VIPs the node may hold from now on.
func (t *Tickler) Follow(vips []VIP) {
	t.mu.Lock()
	t.vips = vips
	maps.DeleteFunc(t.known, func(peer netip.Addr, _ told) bool { return !t.isPeer(peer) })
	t.mu.Unlock()
	t.look()
}

// See says which addresses the node has, and which VIPs among them came just now.
func (t *Tickler) See(here, came []netip.Addr) {
	t.mu.Lock()
	t.here = here
	for _, vip := range came {
		if all := t.of(vip); t.ctx != nil && len(all) > 0 {
			t.all.Go(func() { t.tickle(vip, all) })
		}
	}
	t.mu.Unlock()
	t.look()
}

// look has Run look now.
func (t *Tickler) look() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Known says of how many clients of a VIP another holder has told this node.
func (t *Tickler) Known(vip netip.Addr) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ports := range t.of(vip) {
		n += count(ports)
	}
	return n
}

// told is what a holder has told this node.
type told struct {
	clients Clients
	at      time.Time
}

// of are the clients of a VIP by what each holder told, if that is not too old. What one
// tells does not replace what another told: the VIP may come to this node by a third,
// which had it for too short a time to tell the clients of the first.
func (t *Tickler) of(vip netip.Addr) (out []map[uint16][]netip.AddrPort) {
	for _, from := range t.known {
		if ports := from.clients[vip]; len(ports) > 0 && time.Since(from.at) < forget {
			out = append(out, ports)
		}
	}
	return out
}

// Sent is how many clients have been sent segments, each counted once for each time that
// a VIP came.
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

// tickle sends the clients of a VIP that came their segments.
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
		t.sending.Warn(t.Log, err, "clients of a VIP that only listen may not notice that its holder is dead", "clients of a VIP notice again that its holder is dead")
	}
	t.Log.Info("clients that another holder had were told that the VIP has moved", "vip", vip, "clients", clients)
}

func (t *Tickler) holds(vip netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.here, vip)
}

// share tells peers who the clients of VIPs are, while this node holds any.
func (t *Tickler) share(ctx context.Context) {
	tick := ticker.New(every)
	defer tick.Stop()
	s := sharing{t: t, peers: map[peer]*teller{}}
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

// sharing is what share remembers.
type sharing struct {
	t     *Tickler
	all   sync.WaitGroup
	peers map[peer]*teller
	due   time.Time
}

// turn does what is due. It says whether there will be something to do again without a
// change: while this node holds a VIP that has peers.
func (s *sharing) turn(ctx context.Context) (again bool) {
	t := s.t
	t.mu.Lock()
	vips, here := t.vips, t.here
	t.mu.Unlock()
	peers := peersOf(vips, here)
	maps.DeleteFunc(s.peers, func(p peer, to *teller) bool {
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
	t.listing.Warn(t.Log, err, "who the clients of VIPs are cannot be listed: those that only listen may wait after a power loss", "the clients of VIPs can be listed again")
	if err != nil {
		return true
	}
	messages, size := map[bool][]byte{true: clients.encode(true), false: clients.encode(false)}, 0
	for _, p := range peers {
		if s.peers[p] == nil {
			s.peers[p] = newTeller(ctx, p, t.Port, &s.all)
		}
		message := messages[p.to.Is4()]
		s.peers[p].tell(message, now)
		size += len(message)
	}
	pace := max(every, time.Duration(size)*time.Second/rate)
	s.due = now.Add(pace - every/4) // ticks are shared, and may come a little early
	t.telling.Warn(t.Log, s.untold(), "clients that only listen may wait when these nodes get a VIP", "all peers know who the clients of VIPs are")
	return true
}

// untold are the peers that have not taken what they were told several times.
func (s *sharing) untold() error {
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
