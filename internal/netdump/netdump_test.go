package netdump

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestList(t *testing.T) {
	other := errors.New("no such device")
	for name, tt := range map[string]struct {
		errs  []error
		calls int
		want  error
	}{
		"at once":     {[]error{nil}, 1, nil},
		"interrupted": {[]error{fmt.Errorf("links: %w", netlink.ErrDumpInterrupted), netlink.ErrDumpInterrupted, nil}, 3, nil},
		"fails":       {[]error{netlink.ErrDumpInterrupted, other, nil}, 2, other},
		"for ever":    {slices.Repeat([]error{netlink.ErrDumpInterrupted}, attempts+1), attempts, netlink.ErrDumpInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			got, err := List(func() ([]int, error) { calls++; return []int{calls}, tt.errs[calls-1] })
			if calls != tt.calls || !errors.Is(err, tt.want) || !slices.Equal(got, []int{calls}) {
				t.Errorf("%v, %v after %d calls", got, err, calls)
			}
		})
	}
}

// Both ends of a connection are listed, of either family, even if an IPv6 socket accepted IPv4;
// a listener is not.
func TestEstablished(t *testing.T) {
	for _, tt := range []struct{ network, listen, dial string }{
		{"tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"tcp6", "[::1]:0", "::1"},
		{"tcp", ":0", "127.0.0.1"},
	} {
		listener, err := net.Listen(tt.network, tt.listen)
		testkit.Must(t, err)
		defer listener.Close()
		at := netip.AddrPortFrom(netip.MustParseAddr(tt.dial), uint16(listener.Addr().(*net.TCPAddr).Port))
		client, err := net.Dial("tcp", at.String())
		testkit.Must(t, err)
		defer client.Close()
		from := client.LocalAddr().(*net.TCPAddr).AddrPort()
		all, err := Established()
		testkit.Must(t, err)
		for _, want := range []Connection{{at, from}, {from, at}} {
			if !slices.Contains(all, want) {
				t.Errorf("%s: no %v among %v", tt.listen, want, all)
			}
		}
		if slices.ContainsFunc(all, func(c Connection) bool { return c.Peer.Port() == 0 }) {
			t.Errorf("a listener among %v", all)
		}
	}
}
