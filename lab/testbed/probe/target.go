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

// Target is what is asked, and from where.
type Target struct {
	// URL is https or http, with an address as its host, such as
	// "https://192.0.2.5:6443/readyz". The server's certificate is not checked.
	URL string
	// Host is the name that is asked for; empty for the host of the URL.
	Host string
	// Timeout bounds a request from connecting to the end of the answer; 1 s if 0.
	Timeout time.Duration
	// Dial connects, as netns.Node.DialContext does; from this machine if nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// defaultTimeout is what a client that probes a VIP usually allows.
const defaultTimeout = time.Second

// client is a Target made ready.
type client struct {
	address     string
	timeout     time.Duration
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	tls         *tls.Config // nil for http
	once, again []byte      // a request, and one after which the connection stays
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
		// Of the key exchanges that every server has, the one that costs least.
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

// askOnce asks over a connection of its own. It returns who answered: see
// connection.from.
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
