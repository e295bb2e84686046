package process

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// Listener accepts TCP connections for a service in this process. The service can be treated
// like a separate process: killed, and suspended.
type Listener struct {
	net.Listener
	gate gate

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after Kill
}

// ListenAt listens at one address of a node, or of this machine if that is nil.
func ListenAt(node *netns.Node, addr netip.AddrPort) (*Listener, error) {
	return open(node, func() (net.Listener, error) { return net.Listen("tcp", addr.String()) })
}

// ListenAll listens at a port of all addresses of a node, even if the kernel has no IPv6 (hard
// case 25).
func ListenAll(node *netns.Node, port int) (*Listener, error) {
	return open(node, func() (net.Listener, error) {
		l, err := net.Listen("tcp", "[::]:"+strconv.Itoa(port))
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			return net.Listen("tcp", "0.0.0.0:"+strconv.Itoa(port))
		}
		return l, err
	})
}

func open(node *netns.Node, listen func() (net.Listener, error)) (*Listener, error) {
	l := &Listener{conns: map[net.Conn]struct{}{}, gate: gate{ended: make(chan struct{})}}
	enter, where := func(f func() error) error { return f() }, "this machine"
	if node != nil {
		enter, where = node.Do, node.Name
	}
	err := enter(func() (err error) {
		for range 100 {
			if l.Listener, err = listen(); !errors.Is(err, syscall.EADDRINUSE) {
				break
			}
			// A child of this process that has not executed its program yet holds the socket of
			// the last listener, too.
			time.Sleep(10 * time.Millisecond)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", where, err)
	}
	return l, nil
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.conns == nil {
		l.mu.Unlock()
		raw.Close()
		return nil, net.ErrClosed
	}
	l.conns[raw] = struct{}{}
	l.mu.Unlock()
	l.gate.wait()
	return &conn{Conn: raw, listener: l}, nil
}

// Kill closes everything, as the kernel does for a killed process: connections end without
// further data, and data that arrives later is answered by a reset.
func (l *Listener) Kill() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	if conns == nil {
		return
	}
	l.Listener.Close()
	for c := range conns {
		c.Close()
	}
	close(l.gate.ended)
}

// Freeze leaves everything to the kernel: it continues to accept connections and data, which
// nothing answers.
func (l *Listener) Freeze() { l.gate.close() }

// Thaw undoes Freeze.
func (l *Listener) Thaw() { l.gate.open() }

// Frozen reports whether Freeze was called, without a later Thaw.
func (l *Listener) Frozen() bool { return !l.gate.isOpen() }

// conn is a connection that a listener accepted.
type conn struct {
	net.Conn
	listener *Listener
}

func (c *conn) Read(b []byte) (n int, err error) {
	c.listener.gate.wait()
	n, err = c.Conn.Read(b)
	c.listener.gate.wait()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.listener.gate.wait()
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.listener.gate.wait()
	c.listener.mu.Lock()
	delete(c.listener.conns, c.Conn)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
