package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Target is the target of requests, and the way to connect to it.
type Target struct {
	// URL is https or http, with an address as its host, such as "https://192.0.2.5:6443/readyz".
	// The server's certificate is not verified.
	URL string
	// Host is the requested host name; empty for the host of the URL.
	Host string
	// Timeout is the timeout of a request, from connecting to the end of the answer; 1 s if 0.
	Timeout time.Duration
	// Dial connects, as netns.Node.DialContext does; nil connects from this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// defaultTimeout is a usual timeout of clients that probe a VIP.
const defaultTimeout = time.Second

// client is a prepared Target.
type client struct {
	address     string
	timeout     time.Duration
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	tls         *tls.Config // nil for http
	once, again []byte      // a request that closes the connection, and one that keeps it open
}

func newClient(t Target) (*client, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the URL to probe: %w", err)
	}
	c := &client{timeout: t.Timeout, dial: t.Dial}
	port := "80"
	switch u.Scheme {
	case "http":
	case "https":
		port = "443"
		// The cheapest of the key exchanges that every server supports.
		c.tls = &tls.Config{InsecureSkipVerify: true, ServerName: t.Host, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}}
	default:
		return nil, fmt.Errorf("probing %q: neither https:// nor http://", t.URL)
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("probing %q: its host must be an IP address: %w", t.URL, err)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	c.address = net.JoinHostPort(addr.String(), port)
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	if c.once, err = request(t, true); err == nil {
		c.again, err = request(t, false)
	}
	return c, err
}

// request returns the bytes of a GET of the target.
func request(t Target, last bool) ([]byte, error) {
	r, err := http.NewRequest(http.MethodGet, t.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %q: %w", t.URL, err)
	}
	r.Header.Set("User-Agent", "vipgen-lab")
	r.Close = last
	if t.Host != "" {
		r.Host = t.Host
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return nil, fmt.Errorf("asking for %q: %w", t.URL, err)
	}
	return b.Bytes(), nil
}

// askOnce sends a request over a new connection and returns the server that answered: see
// connection.ask.
func (c *client) askOnce(ctx context.Context) (from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ask(ctx, c.once)
}
