package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// maxBody is how much of an answer is read, in bytes: readyz lists its checks.
const maxBody = 64 << 10

// HTTP probes a URL over a connection that stays open between probes.
type HTTP struct {
	url    string
	client *http.Client
}

// NewHTTP makes a probe of a URL. The host "localhost" means the loopback
// address of either family, whichever answers, without a look into any list of
// names: IPv6 may be switched off (hard case 25), or a service may listen on
// one family alone.
//
// Any certificate will do. Probes stay on the node and carry no secret, and the
// certificates there are for other names and may have run out.
//
// It speaks HTTP/1.1, where a request that times out takes its connection along
// and the next one starts afresh.
func NewHTTP(url string) *HTTP {
	return &HTTP{url: url, client: &http.Client{
		Transport: &http.Transport{
			DialContext:         new(loopback).dial,
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
			MaxIdleConnsPerHost: 1,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connection.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Probe succeeds when a GET answers 200.
func (h *HTTP) Probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("no answer: %w", cause)
		}
		return err
	}
	defer resp.Body.Close()
	// To its end, or the connection could not be used again.
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}

// Connect returns a probe that succeeds when a TCP connection to a port of
// loopback is accepted.
func Connect(port int) func(context.Context) error {
	var l loopback
	return func(ctx context.Context) error {
		conn, err := l.dial(ctx, "tcp", fmt.Sprintf("localhost:%d", port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// dialTimeout ends attempts that nobody waits for any more.
const dialTimeout = 2 * time.Second

// loopback dials "localhost" by both families, the one that worked last first.
type loopback struct{ six atomic.Bool }

func (l *loopback) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return dialer.DialContext(ctx, network, address)
	}
	six := l.six.Load()
	conn, first := dialer.DialContext(ctx, network, net.JoinHostPort(address46(six), port))
	if first == nil {
		return conn, nil
	}
	conn, second := dialer.DialContext(ctx, network, net.JoinHostPort(address46(!six), port))
	if second == nil {
		l.six.Store(!six)
		return conn, nil
	}
	return nil, worthSaying(first, second)
}

func address46(six bool) string {
	if six {
		return "::1"
	}
	return "127.0.0.1"
}

// worthSaying leaves out that IPv6 is switched off, or that nobody listens
// there either.
func worthSaying(first, second error) error {
	for _, dull := range []error{syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.ENETUNREACH, syscall.ECONNREFUSED} {
		if errors.Is(second, dull) {
			return first
		}
	}
	return second
}
