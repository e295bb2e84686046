package health

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/vipgen/vipgen/internal/loopback"
	"github.com/vipgen/vipgen/internal/rawio"
)

// maxBody bounds the read part of a response, in bytes: readyz lists its checks.
const maxBody = 64 << 10

// HTTP probes a URL over a connection that stays open between probes. Only one goroutine
// may use it at a time.
//
// Several of them probe four times a second, for as long as the node runs: a request and
// its response are a write and a read by the calling goroutine. http.Client, which passes
// both to its own goroutines, took most of the agent's CPU time.
type HTTP struct {
	address  string      // host and port
	tls      *tls.Config // nil for plain HTTP
	request  *http.Request
	question []byte // the request on the wire
	dialer   loopback.Dialer

	conn   net.Conn // nil for none
	reader *bufio.Reader
}

// NewHTTP returns a probe of a URL with a port. The host "localhost" means the loopback
// address of the family that answers, without name resolution: IPv6 may be disabled (hard
// case 25), or the service may listen on one family only.
//
// Any certificate is accepted. Probes stay on the node and carry no secret, and the
// certificates are for other names and may have expired.
//
// It uses HTTP/1.1, where a time-out closes the connection and the next request opens a
// new one.
func NewHTTP(url string) *HTTP {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	var question bytes.Buffer
	if err == nil {
		err = request.Write(&question)
	}
	if err != nil {
		panic(err) // URLs are constant except for ports
	}
	h := &HTTP{
		address: request.URL.Host, request: request, question: question.Bytes(),
		dialer: loopback.Dialer{Dialer: net.Dialer{Timeout: dialTimeout}},
	}
	if request.URL.Scheme == "https" {
		h.tls = &tls.Config{ServerName: request.URL.Hostname(), InsecureSkipVerify: true}
	}
	return h
}

// Close closes the connection.
func (h *HTTP) Close() {
	if h.conn != nil {
		h.conn.Close()
		h.conn = nil
	}
}

// errNoAnswer reports that the connection was closed before an answer.
var errNoAnswer = errors.New("the connection was closed without an answer")

// Probe returns nil if a GET answers 200. The connection stays open if it can be reused.
func (h *HTTP) Probe(ctx context.Context) (err error) {
	kept, again := h.conn != nil, false
	defer func() {
		if !again {
			h.Close()
		}
		if kept && errors.Is(err, errNoAnswer) && ctx.Err() == nil {
			err = h.Probe(ctx) // the service had closed the connection: retry on a new one
		} else if cause := context.Cause(ctx); err != nil && cause != nil {
			err = fmt.Errorf("no answer: %w", cause)
		}
	}()
	if !kept {
		if err := h.dial(ctx); err != nil {
			return err
		}
	}
	conn := h.conn
	interrupt := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer func() { again = interrupt() && again }()
	if _, err := conn.Write(h.question); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if _, err := h.reader.Peek(1); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	resp, err := http.ReadResponse(h.reader, h.request)
	if err != nil {
		return err
	}
	// Read to the end, so that the connection can be reused.
	n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	again = !resp.Close && n < maxBody
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}

func (h *HTTP) dial(ctx context.Context) error {
	conn, err := h.dialer.DialContext(ctx, "tcp", h.address)
	if err != nil {
		return err
	}
	conn = rawio.Conn(conn)
	if h.tls != nil {
		secure := tls.Client(conn, h.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return err
		}
		conn = secure
	}
	h.conn, h.reader = conn, bufio.NewReader(conn)
	return nil
}

// connect returns a probe that succeeds if a TCP connection to a loopback port is
// accepted.
func connect(port int) func(context.Context) error {
	l := loopback.Dialer{Dialer: net.Dialer{Timeout: dialTimeout}}
	return func(ctx context.Context) error {
		conn, err := l.DialContext(ctx, "tcp", fmt.Sprintf("localhost:%d", port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// dialTimeout ends abandoned attempts.
const dialTimeout = 2 * time.Second
