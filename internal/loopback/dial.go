// Package loopback dials services of the node itself, by either address family
// and without a look into any list of names: /etc/hosts may be missing in a
// container, and IPv6 may be switched off (hard case 25).
package loopback

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// Dialer takes the host "localhost" for the loopback address of either family,
// the one that worked last first. Other hosts it dials as net.Dialer does.
type Dialer struct {
	net.Dialer
	six atomic.Bool
}

// DialContext dials an address "host:port".
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return d.Dialer.DialContext(ctx, network, address)
	}
	six := d.six.Load()
	conn, first := d.Dialer.DialContext(ctx, network, net.JoinHostPort(of(six), port))
	if first == nil {
		return conn, nil
	}
	conn, second := d.Dialer.DialContext(ctx, network, net.JoinHostPort(of(!six), port))
	if second == nil {
		d.six.Store(!six)
		return conn, nil
	}
	return nil, worthSaying(first, second)
}

func of(six bool) string {
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
