package kubeapi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"github.com/vipgen/vipgen/lab/netns"
)

// listener is where a server of this process listens. It can be treated like a
// process: be killed, and be stopped where it is.
type listener struct {
	net.Listener
	gate gate

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil once it was killed
}

// listen opens a port of a node at all of its addresses, also where the kernel
// has no IPv6 (hard case 25), or of this machine at one address.
func listen(node *netns.Node, addr netip.AddrPort) (*listener, error) {
	l := &listener{conns: map[net.Conn]struct{}{}, gate: gate{ended: make(chan struct{})}}
	if node == nil {
		var err error
		l.Listener, err = net.Listen("tcp", addr.String())
		return l, err
	}
	port := strconv.Itoa(int(addr.Port()))
	err := node.Do(func() (err error) {
		l.Listener, err = net.Listen("tcp", "[::]:"+port)
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			l.Listener, err = net.Listen("tcp", "0.0.0.0:"+port)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", node.Name, err)
	}
	return l, nil
}

// Accept is part of net.Listener.
func (l *listener) Accept() (net.Conn, error) {
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

// kill closes everything as the kernel does for a process that was killed:
// nothing is said over connections, and what comes over them later is reset.
func (l *listener) kill() {
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

// conn is a connection that a listener accepted.
type conn struct {
	net.Conn
	listener *listener
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

// gate holds those who come to it while it is shut.
type gate struct {
	ended chan struct{} // closed when nobody is held any more

	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil while it is open
}

func (g *gate) wait() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return
	}
	select {
	case <-shut:
	case <-g.ended:
	}
}

// close shuts the gate.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// open lets everybody go on.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// isOpen says whether nobody is held.
func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut == nil
}
