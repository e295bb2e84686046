package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// HoldConfig configures held connections.
type HoldConfig struct {
	Target
	Connections int
	Every       time.Duration // time between two requests of a connection; 5 s if 0
}

const (
	defaultHoldEvery = 5 * time.Second
	// opening is the number of connections that are opened, or used for the last time, in parallel.
	opening = 32
)

// Held holds a number of open connections, with requests from time to time that are evenly spread.
// A connection that breaks is counted and replaced.
type Held struct {
	client *client
	every  time.Duration
	conns  []*heldConnection
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	result HoldResult
}

// HoldResult counts the failures of held connections after all were open.
type HoldResult struct {
	Connections int
	Requests    int // completed requests
	Answered    int
	Refused     int            // reconnecting was refused
	Reset       int            // the connection was reset
	Closed      int            // the connection was closed instead of an answer
	Unanswered  int            // no answer within the timeout
	Other       int            // any other error, such as a status of 400 and more
	Errors      map[string]int // number of errors by text
}

// Broken returns the number of failed requests.
func (r HoldResult) Broken() int { return r.Requests - r.Answered }

// heldConnection is used by one goroutine at a time.
type heldConnection struct {
	*connection // nil while broken
}

// Hold opens the connections, and sends one request over each. A failure until all are open is
// returned as an error. The caller must End the connections.
func Hold(ctx context.Context, cfg HoldConfig) (*Held, error) {
	c, err := newClient(cfg.Target)
	if err != nil {
		return nil, err
	}
	h := &Held{client: c, every: cfg.Every}
	if h.every <= 0 {
		h.every = defaultHoldEvery
	}
	for range cfg.Connections {
		h.conns = append(h.conns, &heldConnection{})
	}
	err = h.each(func(conn *heldConnection) error { return h.ask(ctx, conn) })
	if err != nil {
		h.close()
		return nil, fmt.Errorf("opening %d connections to %s: %w", cfg.Connections, c.address, err)
	}
	ctx, h.cancel = context.WithCancel(context.Background())
	for i, conn := range h.conns {
		first := h.every * time.Duration(i) / time.Duration(len(h.conns))
		h.done.Go(func() { h.keep(ctx, conn, first) })
	}
	return h, nil
}

// keep sends requests over one connection until ctx ends; it waits for a pending answer.
func (h *Held) keep(ctx context.Context, conn *heldConnection, first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		h.record(h.ask(context.Background(), conn))
		timer.Reset(h.every)
	}
}

// ask sends a request over a connection, which it opens if necessary.
func (h *Held) ask(ctx context.Context, conn *heldConnection) (err error) {
	ctx, cancel := context.WithTimeout(ctx, h.client.timeout)
	defer cancel()
	if conn.connection == nil {
		conn.connection, err = h.client.connect(ctx)
	}
	if err == nil {
		_, err = conn.ask(ctx, h.client.again)
	}
	if err != nil && conn.connection != nil {
		conn.Close()
		conn.connection = nil
	}
	return err
}

func (h *Held) record(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.result
	r.Requests++
	if err == nil {
		r.Answered++
		return
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		r.Refused++
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		r.Reset++
	case errors.Is(err, io.EOF):
		r.Closed++
	case err == errUnanswered:
		r.Unanswered++
	default:
		r.Other++
	}
	if r.Errors == nil {
		r.Errors = map[string]int{}
	}
	r.Errors[err.Error()]++
}

// each calls f for every connection, several at a time, until one fails.
func (h *Held) each(f func(*heldConnection) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	work := make(chan *heldConnection)
	var all sync.WaitGroup
	for range min(opening, len(h.conns)) {
		all.Go(func() {
			for conn := range work {
				if err := f(conn); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, conn := range h.conns {
		if ctx.Err() != nil {
			break
		}
		work <- conn
	}
	close(work)
	all.Wait()
	return context.Cause(ctx)
}

// End sends one more request over every connection, to detect those that broke since their last
// request, closes them and returns the result. It can be called again.
func (h *Held) End() HoldResult {
	h.cancel()
	h.done.Wait()
	if !h.ended {
		h.ended = true
		h.each(func(conn *heldConnection) error {
			h.record(h.ask(context.Background(), conn))
			return nil
		})
		h.close()
	}
	h.result.Connections = len(h.conns)
	return h.result
}

func (h *Held) close() {
	for _, conn := range h.conns {
		if conn.connection != nil {
			conn.Close()
			conn.connection = nil
		}
	}
}
