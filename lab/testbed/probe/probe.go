package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DefaultEvery is the time between two requests of a probe. It is the finest
// step in which an outage is measured.
const DefaultEvery = 10 * time.Millisecond

// Config is how a probe asks.
type Config struct {
	Target
	Every time.Duration // from one request to the next; DefaultEvery if 0
	Since time.Time     // what all times are counted from; when the probe starts if zero
}

// Probe asks over and over, and does not wait for one answer before it asks
// again. What is in flight is bounded by twice what the time-out allows for.
type Probe struct {
	client *client
	every  time.Duration
	since  time.Time
	bound  int

	stop func() // sending
	done chan struct{}

	mu       sync.Mutex
	requests []Request // in the order in which they were sent
	settled  int       // all before this one have ended
	inFlight int
}

// Request is one of a probe. Times are since Config.Since.
type Request struct {
	Sent  time.Duration // when connecting began
	Ended time.Duration // when the answer was there, or there would be none; 0 while in flight
	Err   string        // why there was no answer; empty if there was
	From  string        // who answered: the common name of the certificate, or the text
}

// errCrowded is the end of a request that was never sent.
var errCrowded = errors.New("too many requests without an answer yet")

// Start begins to ask. The caller must End it.
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

// run sends requests until ctx ends, and waits for those that have no answer yet:
// they end by themselves, at the time-out at the latest. Moments that the machine
// missed are not made up for: Result.Pause tells.
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

// send notes a request and says whether it may be sent.
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

// end notes the end of a request.
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

// Await returns when n requests in a row were answered that were sent after the
// call, and none that was sent before them is in flight any more: whatever was
// lost before is known by then. The error is that of ctx, with the last request
// that was lost.
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

// row says whether, of the requests before the first that is in flight, the last n
// were answered and sent after since.
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

// End stops asking, waits for the requests that are in flight, for as long as the
// time-out at most, and returns what was seen. It can be called more than once.
func (p *Probe) End() Result {
	p.stop()
	<-p.done
	return Result{Requests: slices.Clone(p.requests)}
}
