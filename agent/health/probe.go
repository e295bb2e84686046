package health

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/vipgen/vipgen/agent/loopback"
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
			DialContext:         (&loopback.Dialer{Dialer: net.Dialer{Timeout: dialTimeout}}).DialContext,
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
	l := loopback.Dialer{Dialer: net.Dialer{Timeout: dialTimeout}}
	return func(ctx context.Context) error {
		conn, err := l.DialContext(ctx, "tcp", fmt.Sprintf("localhost:%d", port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// dialTimeout ends attempts that nobody waits for any more.
const dialTimeout = 2 * time.Second
