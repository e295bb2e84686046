package firewall

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// open returns connections from both sides, over both families.
func (l *lab) open(want string) []*connection {
	l.t.Helper()
	var out []*connection
	for _, from := range []*netns.Node{l.client, l.node} {
		for _, vip := range []netip.Addr{vips[0], vips[2]} {
			conn, port := l.connect(from, vip, 6443)
			if port != want {
				l.t.Fatalf("answer from port %s, want %s", port, want)
			}
			out = append(out, conn)
		}
	}
	return out
}

func allWork(conns []*connection, when string) {
	for _, conn := range conns {
		conn.t.Helper()
		conn.works(when)
	}
}

// Established connections are kept, whatever happens to the rules. The first ones were made
// before the kernel tracked connections, which picks them up midstream.
func TestEstablishedConnectionsStay(t *testing.T) {
	l := newLab(t)
	direct := l.open("6443")
	k := l.placed()
	allWork(direct, "the redirect was placed")

	redirected := l.open("9445")
	l.nft("flush", "ruleset")
	testkit.Await(t, "the redirect", func() bool { return l.present(api) })
	allWork(direct, "flushed and restored")
	allWork(redirected, "flushed and restored")

	k.serving(false)
	testkit.Await(t, "its end", func() bool { return !k.state().InPlace })
	allWork(direct, "withdrawn")
	allWork(redirected, "withdrawn")
	direct = append(direct, l.open("6443")...)

	k.serving(true)
	testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
	allWork(direct, "placed again")
	allWork(redirected, "placed again")
	l.open("9445")
	k.end()
	allWork(direct, "removed")
}
