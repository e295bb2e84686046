package loopback

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

// Hard case 25: a service that listens on one family alone is found, and found
// first the next time.
func TestDialer(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_, port, err := net.SplitHostPort(l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			var d Dialer
			for range 2 {
				conn, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("localhost", port))
				if err != nil {
					t.Fatal(err)
				}
				if got := conn.RemoteAddr().String(); got != l.Addr().String() {
					t.Errorf("connected to %s, want %s", got, l.Addr())
				}
				conn.Close()
			}
			if got, want := d.six.Load(), host == "::1"; got != want {
				t.Errorf("IPv6 first the next time: %t, want %t", got, want)
			}
			l.Close()
			if _, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("localhost", port)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("nobody listens: %v, want a refusal", err)
			}
		})
	}
}
