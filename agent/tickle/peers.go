package tickle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// deliveryTimeout bounds the time of a peer to accept a message.
	deliveryTimeout = time.Second
	// tries is the number of consecutive failures that are more than a restart of the
	// peer.
	tries = 5
)

// peer is a node that may become the next holder of a VIP.
type peer struct{ from, to netip.Addr }

func peersOf(vips []VIP, here []netip.Addr) (out []peer) {
	for _, v := range vips {
		if !slices.Contains(here, v.Address) {
			continue
		}
		for _, p := range v.Peers {
			if p := (peer{v.Source, p}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// sender sends messages to one peer over a connection that stays open. Peers that do not
// answer delay no others.
type sender struct {
	to     netip.AddrPort
	dialer net.Dialer
	all    *sync.WaitGroup
	stop   context.CancelFunc // closes the connection
	ctx    context.Context
	conn   net.Conn // owned by deliver; nil for none

	mu       sync.Mutex
	busy     bool
	failures int
	taken    []byte // last message; nil before the first
	at       time.Time
}

func newSender(ctx context.Context, p peer, port int, all *sync.WaitGroup) *sender {
	t := &sender{
		all: all, to: netip.AddrPortFrom(p.to, uint16(port)),
		dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: p.from.AsSlice()}, Timeout: deliveryTimeout},
	}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// failed reports whether the peer failed several times in a row.
func (p *sender) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures >= tries
}

// send sends a message, unless the peer has just accepted the same, failed repeatedly, or
// still receives one.
func (p *sender) send(body []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.failures == 0 && bytes.Equal(body, p.taken)
	if p.busy || now.Sub(p.at) < resendAfter && (known || p.failures >= tries) {
		return
	}
	p.busy, p.at = true, now
	p.all.Go(func() {
		err := p.deliver(body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy, p.taken = false, body; err != nil {
			p.failures = min(p.failures+1, tries)
		} else {
			p.failures = 0
		}
	})
}

// deliver sends a message and waits for its acceptance. It replaces a connection that the
// peer has closed.
func (p *sender) deliver(message []byte) error {
	if p.conn != nil {
		if err := p.exchange(message); err == nil || errors.Is(err, errRefused) {
			return err
		}
	}
	conn, err := p.dialer.DialContext(p.ctx, "tcp", p.to.String())
	if err != nil {
		return err
	}
	context.AfterFunc(p.ctx, func() { conn.Close() })
	p.conn = conn
	return p.exchange(message)
}

var errRefused = errors.New("the peer refuses it")

// exchange closes the connection on failure.
func (p *sender) exchange(message []byte) error {
	_ = p.conn.SetDeadline(time.Now().Add(deliveryTimeout))
	_, err := p.conn.Write(message)
	var answer [1]byte
	if err == nil {
		_, err = io.ReadFull(p.conn, answer[:])
	}
	if err == nil && answer[0] != taken {
		err = errRefused
	}
	if err != nil {
		p.conn.Close()
		p.conn = nil
	}
	return err
}
