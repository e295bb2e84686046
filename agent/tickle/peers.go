package tickle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	path = "/clients"
	// answerTime is how long a peer has to take what it is told.
	answerTime = time.Second
	// tries are how many failures in a row are no accident: a peer restarts.
	tries = 5
	// maxConnections are those of peers at one time.
	maxConnections = 64
)

// peer is a node that may follow this one as the holder of a VIP.
type peer struct{ from, to netip.Addr }

// peersOf are those of the VIPs that are here.
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

// teller tells one peer. One that does not answer keeps nobody else waiting.
type teller struct {
	url    string
	client *http.Client
	all    *sync.WaitGroup

	mu       sync.Mutex
	busy     bool
	failures int
	taken    []byte // nil before the first
	at       time.Time
}

func newTeller(p peer, port int, all *sync.WaitGroup) *teller {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: p.from.AsSlice()}, Timeout: answerTime}
	return &teller{
		all: all,
		url: (&url.URL{Scheme: "http", Host: netip.AddrPortFrom(p.to, uint16(port)).String(), Path: path}).String(),
		client: &http.Client{Timeout: answerTime, Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		}},
	}
}

// failed says whether the peer has not taken anything several times in a row.
func (p *teller) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures >= tries
}

// tell sends body, unless the peer has just taken it, or failed again and again, or is
// still being told.
func (p *teller) tell(ctx context.Context, body []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.failures == 0 && bytes.Equal(body, p.taken)
	if p.busy || now.Sub(p.at) < unchanged && (known || p.failures >= tries) {
		return
	}
	p.busy, p.at = true, now
	p.all.Go(func() {
		err := p.put(ctx, body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy, p.taken = false, body; err != nil {
			p.failures = min(p.failures+1, tries)
		} else {
			p.failures = 0
		}
	})
}

func (p *teller) put(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 1024) // so that the connection can be used again
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the peer answers %s", answer.Status)
	}
	return nil
}

// serve takes what peers tell, until ctx ends. Where the port is taken it tries again.
func (t *Tickler) serve(ctx context.Context) {
	server := &http.Server{
		Handler: http.HandlerFunc(t.take), ReadHeaderTimeout: answerTime, ReadTimeout: 2 * answerTime, WriteTimeout: 2 * answerTime,
		IdleTimeout: time.Minute, MaxHeaderBytes: 4096, ErrorLog: slog.NewLogLogger(t.Log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	for ctx.Err() == nil {
		on, err := net.Listen("tcp", ":"+strconv.Itoa(t.Port))
		t.serving.Warn(t.Log, err, "this node cannot be told who the clients of VIPs are: those that only listen may wait when it gets a VIP", "this node can be told who the clients of VIPs are")
		if err == nil {
			_ = server.Serve(peersOnly{netutil.LimitListener(on, maxConnections), t})
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// peersOnly closes connections of others before anything is read from them.
type peersOnly struct {
	net.Listener
	t *Tickler
}

func (l peersOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, ok := conn.RemoteAddr().(*net.TCPAddr)
		if ok && l.t.admits(from.AddrPort().Addr().Unmap()) {
			return conn, nil
		}
		conn.Close()
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

// take is the answer to a holder. What it tells replaces what it told before.
func (t *Tickler) take(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || r.URL.Path != path {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "too long, or too slow", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clients, err := decode(body, t.vips)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.known[netip.MustParseAddrPort(r.RemoteAddr).Addr().Unmap()] = told{clients, time.Now()}
	w.WriteHeader(http.StatusNoContent)
}
