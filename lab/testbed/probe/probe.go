package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DefaultEvery is the default time between two requests of a probe, which is the resolution of
// measured outages.
const DefaultEvery = 10 * time.Millisecond

// LiveEvery is the interval of live tests, whose nodes and clients share the cores of one machine:
// a TLS connection every DefaultEvery takes what the nodes need.
const LiveEvery = 50 * time.Millisecond

// Config configures a probe.
type Config struct {
	Target
	Every time.Duration // time between two requests; DefaultEvery if 0
	Since time.Time     // origin of all times; the start of the probe if zero
}

// Probe sends requests periodically, without waiting for the answers. The number of pending
// requests is limited to twice those of a timeout.
type Probe struct {
	client *client
	every  time.Duration
	since  time.Time
	bound  int

	stop func() // stops sending
	done chan struct{}

	mu       sync.Mutex
	requests []Request // in the order of sending
	settled  int       // all before this index have ended
	inFlight int
}

// Request is a request of a probe. Times are relative to Config.Since.
type Request struct {
	Sent  time.Duration // start of connecting
	Ended time.Duration // time of the answer or the failure; 0 while pending
	Err   string        // error; empty if there was an answer
	From  string        // the server that answered: the common name of the certificate, or the text
}

// errCrowded is the error of a request that was not sent.
var errCrowded = errors.New("too many requests without an answer yet")

// Start starts a probe. The caller must End it.
func Start(cfg Config) (*Probe, error) {
	c, err := newClient(cfg.Target)
	if err != nil {
		return nil, err
	}
	p := &Probe{client: c, every: cfg.Every, since: cfg.Since, done: make(chan struct{})}
	if p.every <= 0 {
		p.every = DefaultEvery
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	p.bound = max(1, int(2*c.timeout/p.every))
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	go p.run(ctx)
	return p, nil
}

// run sends requests until ctx ends, and waits for pending ones, which end at the timeout at the
// latest. It does not catch up on times that a busy machine missed: see Result.Pause.
func (p *Probe) run(ctx context.Context) {
	defer close(p.done)
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		if index, ok := p.send(); ok {
			all.Go(func() {
				from, err := p.client.askOnce(context.Background())
				p.end(index, from, err)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// send records a request and reports whether it may be sent.
func (p *Probe) send() (index int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Request{Sent: time.Since(p.since)}
	if ok = p.inFlight < p.bound; ok {
		p.inFlight++
	} else {
		r.Ended, r.Err = r.Sent, errCrowded.Error()
	}
	p.requests = append(p.requests, r)
	return len(p.requests) - 1, ok
}

// end records the end of a request.
func (p *Probe) end(index int, from string, err error) {
	now := time.Since(p.since)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	r := &p.requests[index]
	r.Ended, r.From = now, from
	if err != nil {
		r.Err = err.Error()
	}
}

// Now returns the time since Config.Since.
func (p *Probe) Now() time.Duration { return time.Since(p.since) }

// Await waits until n requests in a row were answered that were sent after the call, and no earlier
// request is pending: all earlier losses are known then. The error is ctx's, with the last lost
// request.
func (p *Probe) Await(ctx context.Context, n int) error {
	since := p.Now()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for !p.row(since, n) {
		select {
		case <-tick.C:
		case <-p.done:
			return errors.New("waiting for answers: the probe has ended")
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d answers in a row from %s: %w; %s", n, p.client.address, ctx.Err(), p.lastLoss())
		}
	}
	return nil
}

// row reports whether the last n requests before the first pending one were answered, and sent
// after since.
func (p *Probe) row(since time.Duration, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.settled < len(p.requests) && p.requests[p.settled].Ended != 0 {
		p.settled++
	}
	first := p.settled - n
	if first < 0 || p.requests[first].Sent < since {
		return false
	}
	return !slices.ContainsFunc(p.requests[first:p.settled], func(r Request) bool { return r.Err != "" })
}

func (p *Probe) lastLoss() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.requests) - 1; i >= 0; i-- {
		if r := p.requests[i]; r.Err != "" {
			return fmt.Sprintf("the last that was lost, after %v: %s", r.Ended-r.Sent, r.Err)
		}
	}
	return "none was lost"
}

// End stops sending, waits for pending requests, at most until the timeout, and returns the result.
// It can be called again.
func (p *Probe) End() Result {
	p.stop()
	<-p.done
	return Result{Requests: slices.Clone(p.requests)}
}

// Sent returns the requests that were sent from a time on. Pending ones have not ended.
func (p *Probe) Sent(from time.Duration) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, _ := slices.BinarySearchFunc(p.requests, from, func(r Request, at time.Duration) int { return cmp.Compare(r.Sent, at) })
	return slices.Clone(p.requests[first:])
}
