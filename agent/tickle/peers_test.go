package tickle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// newTickler returns a Tickler with a peer at a loopback address, and one of its VIPs.
func newTickler(port int, peers ...string) *Tickler {
	t := New(port, slog.New(slog.DiscardHandler))
	v := VIP{Address: api4.Address, Source: addr("127.0.0.1")}
	for _, p := range peers {
		v.Peers = append(v.Peers, addr(p))
	}
	t.Follow([]VIP{v})
	return t
}

// freePort is one of all addresses.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", ":0")
	testkit.Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func running(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// A holder sends its clients to a peer, although another one accepts connections without
// answering, and a third one does not listen. The peer drops them when the holder is no longer
// a peer. A restarted peer receives them again.
func TestShare(t *testing.T) {
	list, resend := listEvery, resendAfter
	t.Cleanup(func() { listEvery, resendAfter = list, resend }) // after the cleanups of running
	listEvery, resendAfter = 100*time.Millisecond, 250*time.Millisecond
	port := freePort(t)
	receiver := newTickler(port, "127.0.0.1")
	listen := func(address string) net.Listener {
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr(address), uint16(port)).String())
		testkit.Must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	listen("127.0.0.2")
	ctx, cancel := context.WithCancel(t.Context())
	first, done := listen("127.0.0.3"), make(chan struct{})
	go func() { defer close(done); receiver.accept(ctx, first) }()

	holder := newTickler(port, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	running(t, holder.share)
	holder.Observe([]netip.Addr{api4.Address}, nil)
	told := func() bool {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		_, told := receiver.known[addr("127.0.0.1")]
		return told
	}
	testkit.Await(t, "the peer to be notified", told)
	vips := receiver.vips
	receiver.Follow(nil)
	testkit.Equal(t, 0, len(receiver.known))
	cancel()
	<-done
	receiver.Follow(vips)
	second := listen("127.0.0.3")
	running(t, func(ctx context.Context) { receiver.accept(ctx, second) })
	testkit.Await(t, "the peer to be notified again", told)
}

// most returns the longest list of clients, or one of another length.
func most(n int) Clients {
	var list []netip.AddrPort
	for i := range n {
		list = append(list, netip.AddrPortFrom(addr("198.51.100.255"), uint16(i+10000)))
	}
	return Clients{api4.Address: {6443: list}}
}

// testHost is a host that sends to a Tickler at 127.0.0.9.
type testHost struct {
	net.Conn
	t *testing.T
}

func connect(t *testing.T, from string, port int) *testHost {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: addr(from).AsSlice()}}
	conn, err := dialer.Dial("tcp", netip.AddrPortFrom(addr("127.0.0.9"), uint16(port)).String())
	testkit.Must(t, err)
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	t.Cleanup(func() { conn.Close() })
	return &testHost{conn, t}
}

// send sends a message and returns the answer, or -1 if the connection is closed instead.
func (s *testHost) send(message []byte) int {
	s.t.Helper()
	_, _ = s.Write(message) // the peer may have closed it
	var answer [1]byte
	if _, err := io.ReadFull(s, answer[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.t.Errorf("no answer, and the connection stays open")
		}
		return -1
	}
	return int(answer[0])
}

// Only peers are accepted; their messages are validated, and no message blocks the port for
// others.
func TestServe(t *testing.T) {
	port := freePort(t)
	tickler := newTickler(port, "127.0.0.2")
	running(t, tickler.serve)
	good := Clients{api4.Address: {6443: clients("198.51.100.9:1", "198.51.100.9:2")}}.encode(true)
	testkit.Await(t, "the port to be open", func() bool {
		conn, err := net.Dial("tcp", netip.AddrPortFrom(addr("127.0.0.9"), uint16(port)).String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	for name, tt := range map[string]struct {
		from    string
		message []byte
		want    int
	}{
		"a stranger":         {"127.0.0.3", good, -1},
		"HTTP":               {"127.0.0.2", []byte("PUT /clients HTTP/1.1\r\n\r\n"), -1},
		"too long":           {"127.0.0.2", []byte("VTK\x04\xff\xff\xff\xff"), -1},
		"no VIP of a node's": {"127.0.0.2", Clients{addr("192.0.2.9"): {1: clients("198.51.100.9:1")}}.encode(true), refused},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, connect(t, tt.from, port).send(tt.message))
		testkit.Equal(testkit.In(t, name), 0, tickler.Known(api4.Address))
	}
	holder := connect(t, "127.0.0.2", port)
	for _, c := range []struct {
		message []byte
		want    int
	}{{good, 2}, {most(MaxClients).encode(true), MaxClients}, {Clients{}.encode(true), 0}} {
		testkit.Equal(testkit.In(t, c.want), taken, holder.send(c.message))
		testkit.Equal(t, c.want, tickler.Known(api4.Address))
	}
}

// Hard case 52: a peer's address that keeps connections open and sends slowly blocks the port
// for no other peer, and has two connections: a third replaces the first.
func TestHardCase52Connections(t *testing.T) {
	port := freePort(t)
	tickler := newTickler(port, "127.0.0.2", "127.0.0.3")
	on, err := net.Listen("tcp", netip.AddrPortFrom(addr("127.0.0.9"), uint16(port)).String())
	testkit.Must(t, err)
	running(t, func(ctx context.Context) { tickler.accept(ctx, on) })
	good := Clients{api4.Address: {6443: clients("198.51.100.9:1")}}.encode(true)
	var held []*testHost
	for range maxConnections + 10 {
		s := connect(t, "127.0.0.2", port)
		_, _ = s.Write(good[:headerSize+1]) // the peer may have closed it
		held = append(held, s)
	}
	for range 3 {
		if got := connect(t, "127.0.0.3", port).send(good); got != taken {
			t.Fatalf("answer to another peer: %d", got)
		}
	}
	for i, s := range held[:len(held)-perPeer] {
		testkit.Equal(testkit.In(t, i), -1, s.send(nil))
	}
}

// Hard case 52: the lists of many peers' addresses are bounded in total, and decoded without
// delaying the job.
func TestHardCase52Memory(t *testing.T) {
	var peers []string
	for i := range 20 {
		peers = append(peers, fmt.Sprintf("127.0.1.%d", i+1))
	}
	tickler := newTickler(0, peers...)
	message := most(MaxClients).encode(true)[headerSize:]
	for _, p := range peers {
		testkit.Must(t, tickler.store(addr(p), true, message))
	}
	testkit.Equal(t, maxKnown, tickler.Known(api4.Address))
	if _, latest := tickler.known[addr(peers[19])]; !latest {
		t.Errorf("the latest is forgotten")
	}
	if used := testing.AllocsPerRun(3, func() { testkit.Must(t, tickler.store(addr(peers[0]), true, message)) }); used > 100 {
		t.Errorf("%v allocations for a message", used)
	}
}

// The list of one holder is not replaced by that of another, and expires.
func TestKnown(t *testing.T) {
	tickler := newTickler(0, "127.0.0.2", "127.0.0.3")
	tickler.known[addr("127.0.0.2")] = clientList{Clients{api4.Address: {6443: clients("198.51.100.9:1")}}, time.Now().Add(-maxAge / 2)}
	tickler.known[addr("127.0.0.3")] = clientList{Clients{api4.Address: {}}, time.Now()}
	testkit.Equal(t, 1, tickler.Known(api4.Address))
	tickler.known[addr("127.0.0.2")] = clientList{tickler.known[addr("127.0.0.2")].clients, time.Now().Add(-maxAge)}
	testkit.Equal(t, 0, tickler.Known(api4.Address))
}
