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
	// maxConnections bounds the connections of all peers at one time, perPeer those of one: the second
	// is of an agent that restarted.
	maxConnections = 64
	perPeer        = 2
	// idleTime is how long a connection stays open without a message: holders send one
	// every ten seconds at least.
	idleTime = time.Minute
	// minGap is the time between two messages of a peer, of a connection.
	minGap = 500 * time.Millisecond
	// maxKnown bounds the clients that are remembered, of all peers together.
	maxKnown = 4 * MaxClients
)

// serve takes what peers tell, until ctx ends. Where the port is taken it tries again.
func (t *Tickler) serve(ctx context.Context) {
	for ctx.Err() == nil {
		on, err := net.Listen("tcp", ":"+strconv.Itoa(t.Port))
		t.serving.Warn(t.Log, err, "this node cannot be told who the clients of VIPs are: those that only listen may wait when it gets a VIP", "this node can be told who the clients of VIPs are")
		if err == nil {
			t.accept(ctx, on)
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// accept serves connections until the listener fails, or ctx ends. Those of others than
// peers are closed before anything is read from them.
func (t *Tickler) accept(ctx context.Context, on net.Listener) {
	defer on.Close()
	defer context.AfterFunc(ctx, func() { on.Close() })()
	open := &connections{of: map[netip.Addr][]net.Conn{}}
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

// connections are the open ones of each peer, oldest first.
type connections struct {
	mu sync.Mutex
	n  int
	of map[netip.Addr][]net.Conn
}

// add keeps a connection in place of the peer's oldest where it has as many as it may. It
// reports whether there was room.
func (c *connections) add(peer netip.Addr, conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.of[peer]) == perPeer:
		c.of[peer][0].Close()
		c.of[peer] = c.of[peer][1:]
	case c.n == maxConnections:
		return false
	default:
		c.n++
	}
	c.of[peer] = append(c.of[peer], conn)
	return true
}

func (c *connections) remove(peer netip.Addr, conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.of[peer], conn); i >= 0 {
		c.of[peer] = slices.Delete(c.of[peer], i, i+1)
		c.n--
	}
	if len(c.of[peer]) == 0 {
		delete(c.of, peer)
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

// receive takes the messages of a connection, until one is not taken.
func (t *Tickler) receive(ctx context.Context, from netip.Addr, conn net.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(minGap - time.Since(t.lastTold(from))):
		}
		_ = conn.SetDeadline(time.Now().Add(idleTime))
		four, length, err := readHeader(conn)
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(2 * answerTime))
		body := make([]byte, length)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		answer := byte(taken)
		if err := t.take(from, four, body); err != nil {
			t.Log.Debug("list of clients refused", "peer", from, "err", err)
			answer = refused
		}
		if _, err := conn.Write([]byte{answer}); err != nil || answer == refused {
			return
		}
	}
}

func (t *Tickler) lastTold(by netip.Addr) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[by].at
}

// take remembers what a holder tells, in place of what it told before.
func (t *Tickler) take(from netip.Addr, four bool, body []byte) error {
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
		t.known[from] = told{clients, time.Now()}
		t.forgetOldest()
	}
	return nil
}

// forgetOldest keeps to maxKnown.
func (t *Tickler) forgetOldest() {
	sum := 0
	byAge := slices.SortedFunc(maps.Keys(t.known), func(a, b netip.Addr) int { return cmp.Compare(t.known[b].at.UnixNano(), t.known[a].at.UnixNano()) })
	for _, peer := range byAge { // the latest first
		for _, ports := range t.known[peer].clients {
			sum += count(ports)
		}
		if sum > maxKnown {
			delete(t.known, peer)
		}
	}
}
