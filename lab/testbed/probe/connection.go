package probe

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
	"os"
	"syscall"
	"time"
)

// maxBody is the maximum size of an answer in bytes, maxFrom the size of the part that identifies
// the server.
const (
	maxBody = 1 << 20
	maxFrom = 100
)

// connection is a connection to the target, after the TLS handshake.
type connection struct {
	net.Conn
	reader *bufio.Reader
	server string // common name of the server's certificate
}

// connect returns an open connection, or an error of shorten.
func (c *client) connect(ctx context.Context) (*connection, error) {
	raw, err := c.dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, shorten(err)
	}
	if c.tls == nil {
		return &connection{Conn: raw, reader: bufio.NewReader(raw)}, nil
	}
	defer interrupt(ctx, raw)()
	secure := tls.Client(raw, c.tls)
	if err := secure.Handshake(); err != nil {
		raw.Close()
		return nil, shorten(err)
	}
	conn := &connection{Conn: secure, reader: bufio.NewReader(secure)}
	if chain := secure.ConnectionState().PeerCertificates; len(chain) > 0 {
		conn.server = chain[0].Subject.CommonName
	}
	return conn, nil
}

// ask sends a request and reads the answer. It returns the server that answered: the common name of
// its certificate or, over http, the first bytes of the answer. A status of 400 and more is an
// error.
func (c *connection) ask(ctx context.Context, request []byte) (from string, err error) {
	defer interrupt(ctx, c)()
	if _, err := c.Write(request); err != nil {
		return "", shorten(err)
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", shorten(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return "", shorten(err)
	case len(body) > maxBody:
		return "", fmt.Errorf("an answer of more than %d bytes", maxBody)
	case resp.StatusCode >= http.StatusBadRequest:
		return "", fmt.Errorf("status %d", resp.StatusCode)
	case c.server != "":
		return c.server, nil
	}
	return string(bytes.TrimSpace(body[:min(len(body), maxFrom)])), nil
}

// interrupt makes pending operations of the connection fail when ctx ends, until stop is called.
func interrupt(ctx context.Context, conn net.Conn) (stop func()) {
	release := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return func() { release() }
}

var errUnanswered = errors.New("no answer within the timeout")

// shorten reduces a network error to the part that is the same for all connections with the same
// failure, such as "read: connection reset by peer".
func shorten(err error) error {
	op := ""
	var at *net.OpError
	if errors.As(err, &at) {
		op = at.Op + ": "
	}
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errUnanswered
	case errors.As(err, &errno):
		return fmt.Errorf("%s%w", op, errno)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("closed without an answer: %w", io.EOF)
	}
	return err
}
