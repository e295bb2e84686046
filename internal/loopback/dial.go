// Package loopback dials services of the node itself, by either address family and without name
// resolution: /etc/hosts may be missing in a container, and IPv6 may be disabled (hard case
// 25).
package loopback

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// Dialer dials the loopback address of either family for the host "localhost", the one that
// worked last first. Other hosts it dials as net.Dialer does.
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
	conn, first := d.Dialer.DialContext(ctx, network, net.JoinHostPort(loopbackAddress(six), port))
	if first == nil {
		return conn, nil
	}
	conn, second := d.Dialer.DialContext(ctx, network, net.JoinHostPort(loopbackAddress(!six), port))
	if second == nil {
		d.six.Store(!six)
		return conn, nil
	}
	return nil, relevantError(first, second)
}

func loopbackAddress(six bool) string {
	if six {
		return "::1"
	}
	return "127.0.0.1"
}

// relevantError drops an error of disabled IPv6, or of a port that is closed there too.
func relevantError(first, second error) error {
	for _, dull := range []error{syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.ENETUNREACH, syscall.ECONNREFUSED} {
		if errors.Is(second, dull) {
			return first
		}
	}
	return second
}
