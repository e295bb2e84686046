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

// maxBody is how much of an answer is read, in bytes, and maxFrom how much of it
// tells who answered.
const (
	maxBody = 1 << 20
	maxFrom = 100
)

// connection is one to the target, with the TLS handshake done.
type connection struct {
	net.Conn
	reader *bufio.Reader
	server string // the common name in the server's certificate
}

// connect returns an open connection, or one of the errors that tell says.
func (c *client) connect(ctx context.Context) (*connection, error) {
	raw, err := c.dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, tell(err)
	}
	if c.tls == nil {
		return &connection{Conn: raw, reader: bufio.NewReader(raw)}, nil
	}
	defer interrupt(ctx, raw)()
	secure := tls.Client(raw, c.tls)
	if err := secure.Handshake(); err != nil {
		raw.Close()
		return nil, tell(err)
	}
	conn := &connection{Conn: secure, reader: bufio.NewReader(secure)}
	if chain := secure.ConnectionState().PeerCertificates; len(chain) > 0 {
		conn.server = chain[0].Subject.CommonName
	}
	return conn, nil
}

// ask sends a request and reads the answer. It returns who answered: the common
// name in the server's certificate or, over http, the answer's first bytes. An
// answer with a status of 400 and more is an error.
func (c *connection) ask(ctx context.Context, request []byte) (from string, err error) {
	defer interrupt(ctx, c)()
	if _, err := c.Write(request); err != nil {
		return "", tell(err)
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", tell(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return "", tell(err)
	case len(body) > maxBody:
		return "", fmt.Errorf("an answer of more than %d bytes", maxBody)
	case resp.StatusCode >= http.StatusBadRequest:
		return "", fmt.Errorf("status %d", resp.StatusCode)
	case c.server != "":
		return c.server, nil
	}
	return string(bytes.TrimSpace(body[:min(len(body), maxFrom)])), nil
}

// interrupt lets what waits for the connection fail when ctx ends, until stop is
// called.
func interrupt(ctx context.Context, conn net.Conn) (stop func()) {
	release := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return func() { release() }
}

var errUnanswered = errors.New("no answer within the time-out")

// tell shortens an error of the network to what is the same for every connection
// that ends in this way, such as "read: connection reset by peer".
func tell(err error) error {
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
