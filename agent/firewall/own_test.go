package firewall

import (
	"log/slog"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// alsoOwn is api with the node's own connections.
var alsoOwn = Redirect{VIPs: vips, From: 6443, To: 9445, Local: local, Own: true}

// Programs on the node reach its HAProxy wherever the VIP is; other machines reach the
// holder. Without an address of the VIP's family the holder is the only way.
func TestOwnConnectionsGoToHAProxyHere(t *testing.T) {
	l := newLab(t)
	l.serve(l.other, 6443)
	l.ensure(alsoOwn)
	l.reaches(l.node, vips[0], 6443, "9445")
	l.reaches(l.node, vips[2], 6443, "9445")
	l.leave(vips...)
	for _, vip := range vips {
		l.reaches(l.node, vip, 6443, "9445")
		l.reaches(l.client, vip, 6443, "6443")
	}
	l.ensure(Redirect{VIPs: vips, From: 6443, To: 9445, Own: true})
	l.reaches(l.node, vips[0], 6443, "6443")
	l.ensure(api)
	l.reaches(l.node, vips[0], 6443, "6443")
	l.reaches(l.node, vips[2], 6443, "6443")
}

// A connection of a program on the node that was made while the VIP was elsewhere goes on
// when the VIP comes and when it leaves again, and so does the redirect's withdrawal leave
// it alone.
func TestOwnConnectionsOutliveMoves(t *testing.T) {
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
		l.do(func() error { d.look(alsoOwn, slog.New(slog.DiscardHandler)); return nil })
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

// While HAProxy has no API server that is ready, the holder of the VIP is the better way.
// That is nobody's change of the table.
func TestOwnConnectionsWhileHAProxyIsReady(t *testing.T) {
	l := newLab(t)
	l.serve(l.other, 6443)
	k := l.keep()
	k.redirect(alsoOwn)
	ready := func(yes bool) {
		t.Helper()
		k.tell(order{Ready: &yes})
		k.serving(true)
		testkit.Await(t, "the redirect", func() bool { return k.state().InPlace && k.state().Own == yes })
	}
	l.leave(vips[0])
	for range 2 {
		ready(false)
		l.reaches(l.node, vips[0], 6443, "6443")
		l.reaches(l.node, vips[1], 6443, "9445") // is here
		ready(true)
		l.reaches(l.node, vips[0], 6443, "9445")
	}
	l.nft("flush ruleset")
	testkit.Await(t, "the flushed rules", func() bool { return k.state().Restored == 1 })
	l.reaches(l.node, vips[0], 6443, "9445")
	k.serving(false)
	testkit.Await(t, "its end", func() bool { return !k.state().InPlace && !k.state().Own })
	l.reaches(l.node, vips[0], 6443, "6443")
	if got := k.state(); got.Restored != 1 || got.Err != "" {
		t.Errorf("state %+v", got)
	}
}
