package tickle

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// maxConnections bounds the connections of all peers, perPeer those of one: a
	// restarted agent has a second one.
	maxConnections = 64
	perPeer        = 2
	// idleTime is how long a connection may be idle: holders send at least every ten
	// seconds.
	idleTime = time.Minute
	// listenEvery is the interval at which the port is tried again while it is taken.
	listenEvery = 4 * time.Second
	// minGap is the least interval between two messages of a peer.
	minGap = 500 * time.Millisecond
	// maxKnown bounds the stored clients of all peers together.
	maxKnown = 4 * MaxClients
)

// serve receives lists of peers until ctx ends. If the port is taken it tries again.
func (t *Tickler) serve(ctx context.Context) {
	for ctx.Err() == nil {
		on, err := net.Listen("tcp", ":"+strconv.Itoa(t.Port))
		t.serving.Warn(t.Log, err, "cannot receive lists of clients: those that only listen may wait when this node acquires a VIP", "lists of clients received again")
		if err == nil {
			t.accept(ctx, on)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenEvery):
		}
	}
}

// accept serves connections until the listener fails or ctx ends. Connections of hosts
// that are no peers are closed unread.
func (t *Tickler) accept(ctx context.Context, on net.Listener) {
	defer on.Close()
	defer context.AfterFunc(ctx, func() { on.Close() })()
	open := &connections{byPeer: map[netip.Addr][]net.Conn{}}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := on.Accept()
		if err != nil {
			return
		}
		var from netip.Addr
		if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			from = a.AddrPort().Addr().Unmap()
		}
		if !t.admits(from) || !open.add(from, conn) {
			conn.Close()
			continue
		}
		all.Go(func() {
			defer open.remove(from, conn)
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			t.receive(ctx, from, conn)
		})
	}
}

// connections holds the open connections of each peer, oldest first.
type connections struct {
	mu     sync.Mutex
	n      int
	byPeer map[netip.Addr][]net.Conn
}

// add adds a connection, in place of the peer's oldest one at the limit. It reports
// whether there was room.
func (c *connections) add(peer netip.Addr, conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.byPeer[peer]) == perPeer:
		c.byPeer[peer][0].Close()
		c.byPeer[peer] = c.byPeer[peer][1:]
	case c.n == maxConnections:
		return false
	default:
		c.n++
	}
	c.byPeer[peer] = append(c.byPeer[peer], conn)
	return true
}

func (c *connections) remove(peer netip.Addr, conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.byPeer[peer], conn); i >= 0 {
		c.byPeer[peer] = slices.Delete(c.byPeer[peer], i, i+1)
		c.n--
	}
	if len(c.byPeer[peer]) == 0 {
		delete(c.byPeer, peer)
	}
}

func (t *Tickler) admits(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isPeer(a)
}

func (t *Tickler) isPeer(a netip.Addr) bool {
	return slices.ContainsFunc(t.vips, func(v VIP) bool { return slices.Contains(v.Peers, a) })
}

// receive receives messages of a connection until one is refused.
func (t *Tickler) receive(ctx context.Context, from netip.Addr, conn net.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(minGap - time.Since(t.lastReceived(from))):
		}
		_ = conn.SetDeadline(time.Now().Add(idleTime))
		four, length, err := readHeader(conn)
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(2 * deliveryTimeout))
		body := make([]byte, length)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		answer := byte(taken)
		if err := t.store(from, four, body); err != nil {
			t.Log.Debug("list of clients refused", "peer", from, "err", err)
			answer = refused
		}
		if _, err := conn.Write([]byte{answer}); err != nil || answer == refused {
			return
		}
	}
}

func (t *Tickler) lastReceived(by netip.Addr) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[by].at
}

// store stores the list of a holder, in place of its previous one.
func (t *Tickler) store(from netip.Addr, four bool, body []byte) error {
	t.mu.Lock()
	vips := t.vips
	t.mu.Unlock()
	clients, err := decode(body, four, vips)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isPeer(from) {
		t.known[from] = clientList{clients, time.Now()}
		t.forgetOldest()
	}
	return nil
}

// forgetOldest enforces maxKnown.
func (t *Tickler) forgetOldest() {
	sum := 0
	byAge := slices.SortedFunc(maps.Keys(t.known), func(a, b netip.Addr) int { return cmp.Compare(t.known[b].at.UnixNano(), t.known[a].at.UnixNano()) })
	for _, peer := range byAge { // latest first
		for _, ports := range t.known[peer].clients {
			sum += count(ports)
		}
		if sum > maxKnown {
			delete(t.known, peer)
		}
	}
}
