package loopback

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

var families = map[string]int{"127.0.0.1": syscall.AF_INET, "::1": syscall.AF_INET6}

// bind returns a socket that is bound to a port of a loopback address, any port if it is 0, and
// does not listen. No other socket gets that port.
func bind(t *testing.T, host string, port int) (socket int, err error) {
	t.Helper()
	socket, err = syscall.Socket(families[host], syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { syscall.Close(socket) })
	if addr := netip.MustParseAddr(host); addr.Is4() {
		return socket, syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: addr.As4()})
	}
	return socket, syscall.Bind(socket, &syscall.SockaddrInet6{Port: port, Addr: netip.MustParseAddr(host).As16()})
}

// reserve returns a socket of either family with the same port.
func reserve(t *testing.T) (sockets map[string]int, port int) {
	t.Helper()
	for range 100 {
		four, err := bind(t, "127.0.0.1", 0)
		testkit.Must(t, err)
		name, err := syscall.Getsockname(four)
		testkit.Must(t, err)
		port := name.(*syscall.SockaddrInet4).Port
		six, err := bind(t, "::1", port)
		if err == nil {
			return map[string]int{"127.0.0.1": four, "::1": six}, port
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("no port is free in both families")
	return nil, 0
}

// Hard case 25: a service that listens on one family alone is found, and that family is tried
// first the next time.
func TestDialer(t *testing.T) {
	for host := range families {
		t.Run(host, func(t *testing.T) {
			sockets, port := reserve(t)
			testkit.Must(t, syscall.Listen(sockets[host], 10))
			var d Dialer
			local, want := net.JoinHostPort("localhost", strconv.Itoa(port)), net.JoinHostPort(host, strconv.Itoa(port))
			for range 2 {
				conn, err := d.DialContext(context.Background(), "tcp", local)
				testkit.Must(t, err)
				testkit.Equal(t, want, conn.RemoteAddr().String())
				conn.Close()
			}
			if got, want := d.six.Load(), host == "::1"; got != want {
				t.Errorf("IPv6 first the next time: %t, want %t", got, want)
			}
			// It no longer listens, and keeps the port.
			testkit.Must(t, syscall.Shutdown(sockets[host], syscall.SHUT_RDWR))
			if _, err := d.DialContext(context.Background(), "tcp", local); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("without a listener: %v, want a refusal", err)
			}
		})
	}
}
