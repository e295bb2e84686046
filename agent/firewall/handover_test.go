package firewall

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Hard case 43: the redirect of a node that shuts down no longer counts for its priority, and
// stays until its VIPs have moved.
func TestHardCase43RedirectStays(t *testing.T) {
	l := newLab(t)
	k := l.placed()
	yes := true
	k.send(order{Leaving: true, Linger: true, Serving: &yes})
	testkit.Await(t, "it not to count", func() bool { return !k.state().InPlace })
	l.reaches(l.client, vips[0], 6443, "9445")

	k.cmd.Process.Signal(syscall.SIGTERM)
	for range 3 {
		l.reaches(l.client, vips[0], 6443, "9445")
	}
	select {
	case <-k.done:
		t.Fatal("it ended while the VIPs were here")
	default:
	}
	for _, vip := range vips {
		testkit.Run(t, l.node.Command(t.Context(), "ip", "address", "delete", netip.PrefixFrom(vip, vip.BitLen()).String(), "dev", l.node.Link))
	}
	testkit.Await(t, "the redirect to go with the VIPs", func() bool { return !l.present(api) })
	<-k.done
}
