package firewall

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// alsoOwn is api including the node's own connections.
var alsoOwn = Redirect{VIPs: vips, From: 6443, To: 9445, Local: local, Own: true}

// compute is the redirect of a compute node, whose HAProxy listens on loopback.
var compute = Redirect{VIPs: vips, From: 6443, To: 9446, Own: true, OwnOnly: true, Local: map[netip.Addr]netip.Addr{
	vips[0]: loopback[true], vips[1]: loopback[true], vips[2]: loopback[false], vips[3]: loopback[false],
}}

// Programs on a compute node reach HAProxy on loopback. Connections forwarded by the node do
// not, and while HAProxy does not serve, the node's own connections go to the holder.
func TestComputeNode(t *testing.T) {
	l := newLab(t)
	l.serveAt(l.client, "127.0.0.1", 9446)
	l.serveAt(l.client, "::1", 9446)
	on := func(node *netns.Node, r Redirect) {
		t.Helper()
		testkit.Must(t, node.Do(func() error { _, err := ensure(r); return err }))
	}
	on(l.client, compute)
	four, port := l.connect(l.client, vips[0], 6443)
	six, port6 := l.connect(l.client, vips[2], 6443)
	if port != "9446" || port6 != "9446" {
		t.Fatalf("answers from ports %s and %s", port, port6)
	}
	for _, vip := range vips {
		l.reaches(l.client, vip, 6443, "9446")
		l.reaches(l.client, vip, 22623, "22623")
		l.reaches(l.other, vip, 6443, "6443")
	}
	without := compute
	without.Own = false
	for _, r := range []Redirect{without, {}} {
		on(l.client, r)
		l.reaches(l.client, vips[0], 6443, "6443")
		l.reaches(l.client, vips[2], 6443, "6443")
		four.works("HAProxy has no server")
		six.works("HAProxy has no server")
	}
	// Where a VIP is on the node by mistake, other hosts still reach the node's own listeners.
	on(l.node, compute)
	l.reaches(l.other, vips[0], 6443, "6443")
}

// A local connection that was opened while the VIP was on another node survives the arrival and
// the departure of the VIP, and the withdrawal of the redirect.
func TestLocalConnectionsSurviveMoves(t *testing.T) {
	l := newLab(t)
	l.leave(vips...)
	l.ensure(alsoOwn)
	four, port := l.connect(l.node, vips[0], 6443)
	six, port6 := l.connect(l.node, vips[2], 6443)
	if port != "9445" || port6 != "9445" {
		t.Fatalf("answers from ports %s and %s", port, port6)
	}
	var d departures
	look := func() {
		t.Helper()
		l.do(func() error { d.update(alsoOwn, slog.New(slog.DiscardHandler)); return nil })
	}
	look()
	l.move(l.other, l.node, vips...)
	look()
	four.works("the VIPs have come")
	six.works("the VIPs have come")
	l.leave(vips...)
	look()
	four.works("the VIPs have left")
	six.works("the VIPs have left")
	l.ensure(Redirect{})
	four.works("HAProxy serves no more")
	six.works("HAProxy serves no more")
}

// While no API server is ready for HAProxy, local connections go to the holder of the VIP. The
// agent does not count this as a change of the table by another program.
func TestOwnConnectionsWhileHAProxyIsReady(t *testing.T) {
	l := newLab(t)
	l.serve(l.other, 6443)
	k := l.keep()
	k.redirect(alsoOwn)
	ready := func(yes bool) {
		t.Helper()
		k.ready.Store(yes)
		k.serving(true)
		testkit.Await(t, "the redirect", func() bool { return k.state().InPlace && k.state().Own == yes })
	}
	l.leave(vips[0])
	for range 2 {
		ready(false)
		l.reaches(l.node, vips[0], 6443, "6443")
		l.reaches(l.node, vips[1], 6443, "9445") // this node holds it
		ready(true)
		l.reaches(l.node, vips[0], 6443, "9445")
	}
	l.nft("flush ruleset")
	testkit.Await(t, "the flushed rules", func() bool { return k.state().Restored == 1 })
	l.reaches(l.node, vips[0], 6443, "9445")
	k.serving(false)
	testkit.Await(t, "its end", func() bool { return !k.state().InPlace && !k.state().Own })
	l.reaches(l.node, vips[0], 6443, "6443")
	if got := k.state(); got.Restored != 1 || got.Err != nil {
		t.Errorf("state %+v", got)
	}
}
