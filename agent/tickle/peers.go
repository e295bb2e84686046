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
	// answerTime is how long a peer has to take what it is told.
	answerTime = time.Second
	// tries are how many failures in a row are no accident: a peer restarts.
	tries = 5
)

// peer is a node that may follow this one as the holder of a VIP.
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

// teller tells one peer, over a connection that stays open. One that does not answer keeps
// nobody else waiting.
type teller struct {
	to     netip.AddrPort
	dialer net.Dialer
	all    *sync.WaitGroup
	stop   context.CancelFunc // closes the connection
	ctx    context.Context
	conn   net.Conn // of put; nil while there is none

	mu       sync.Mutex
	busy     bool
	failures int
	taken    []byte // nil before the first
	at       time.Time
}

func newTeller(ctx context.Context, p peer, port int, all *sync.WaitGroup) *teller {
	t := &teller{
		all: all, to: netip.AddrPortFrom(p.to, uint16(port)),
		dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: p.from.AsSlice()}, Timeout: answerTime},
	}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// failed says whether the peer has not taken anything several times in a row.
func (p *teller) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures >= tries
}

// tell sends body, unless the peer has just taken it, or failed again and again, or is
// still being told.
func (p *teller) tell(body []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.failures == 0 && bytes.Equal(body, p.taken)
	if p.busy || now.Sub(p.at) < unchanged && (known || p.failures >= tries) {
		return
	}
	p.busy, p.at = true, now
	p.all.Go(func() {
		err := p.put(body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy, p.taken = false, body; err != nil {
			p.failures = min(p.failures+1, tries)
		} else {
			p.failures = 0
		}
	})
}

// put sends a message and waits until it is taken. A connection that the peer has closed
// meanwhile is replaced.
func (p *teller) put(message []byte) error {
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

var errRefused = errors.New("the peer does not take it")

// exchange closes the connection where it fails.
func (p *teller) exchange(message []byte) error {
	_ = p.conn.SetDeadline(time.Now().Add(answerTime))
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
