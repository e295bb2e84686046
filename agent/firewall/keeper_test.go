package firewall

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// placed starts a Keeper and waits until the redirect is in place.
func (l *lab) placed() *keeper {
	l.t.Helper()
	k := l.keep()
	k.redirect(api)
	k.serving(true)
	testkit.Await(l.t, "the redirect", func() bool { return k.state().InPlace })
	return k
}

func TestHardCase06FlushedRulesAreRestored(t *testing.T) {
	l := newLab(t)
	k := l.placed()
	for i, command := range []string{"flush ruleset", "delete table inet vipgen", "flush chain inet vipgen prerouting", "flush ruleset"} {
		start := time.Now()
		l.nft(command)
		testkit.Await(t, "the redirect after "+command, func() bool { return l.present(api) })
		t.Logf("nft %s: in place again %v after nft was started", command, time.Since(start).Round(time.Millisecond))
		testkit.Await(t, "a state that counts it", func() bool { return k.state().Restored == i+1 })
		l.reaches(l.client, vips[0], 6443, "9445")
		l.reaches(l.node, vips[2], 6443, "9445")
	}
}

func TestVIPsChangeWhileRunning(t *testing.T) {
	l := newLab(t)
	k := l.placed()
	k.redirect(Redirect{VIPs: vips[:1], From: 6443, To: 9445})
	testkit.Await(t, "the new redirect", func() bool { return len(k.state().Redirect.VIPs) == 1 && k.state().InPlace })
	l.reaches(l.client, vips[0], 6443, "9445")
	l.reaches(l.client, vips[1], 6443, "6443")

	// An impossible redirect is refused, and the previous one stays.
	k.redirect(Redirect{VIPs: vips[:1], From: 6443, To: 6443})
	testkit.Await(t, "the refusal", func() bool { return k.state().Err != nil })
	testkit.Fails(t, k.state().Err, "redirected to itself")
	if k.state().InPlace {
		t.Error("in place, though it was refused")
	}
	l.reaches(l.client, vips[0], 6443, "9445")
	k.redirect(api)
	testkit.Await(t, "the right redirect", func() bool { return k.state().InPlace && k.state().Err == nil })
	testkit.Equal(t, 0, k.state().Restored)
}

// The rules of an agent that was killed are left until the next one knows whether HAProxy serves.
func TestNextProcessTakesOver(t *testing.T) {
	l := newLab(t)
	l.ensure(api)
	left := l.nft("-a", "list", "table", "inet", "vipgen")
	k := l.keep()
	k.redirect(api)
	testkit.Equal(t, left, l.nft("-a", "list", "table", "inet", "vipgen"))
	k.serving(true)
	testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
	testkit.Equal(t, left, l.nft("-a", "list", "table", "inet", "vipgen"))
	k.serving(false)
	testkit.Await(t, "the end of the redirect", func() bool { return l.present(Redirect{}) })
	k.end()
	if l.tableIsThere() {
		t.Error("the table outlived the process")
	}
}

func TestWithoutTheCapability(t *testing.T) {
	err := newLab(t).node.Do(func() error {
		// Of this thread alone, which needs them again to leave the namespace: it may be the main thread, which does not end.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var all, none [2]unix.CapUserData
		testkit.Must(t, unix.Capget(&header, &all[0]))
		for i := range none {
			none[i].Permitted = all[i].Permitted
		}
		testkit.Must(t, unix.Capset(&header, &none[0]))
		defer func() { testkit.Must(t, unix.Capset(&header, &all[0])) }()
		_, err := ensure(api)
		return err
	})
	testkit.Fails(t, err, "needs the capability NET_ADMIN")
}

func TestHardCase25WithoutIPv6(t *testing.T) {
	l := newLab(t)
	l.do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) })
	k := l.placed() // with VIPs of both families
	for _, vip := range vips[:2] {
		l.reaches(l.client, vip, 6443, "9445")
		l.reaches(l.node, vip, 6443, "9445")
	}
	k.end()
}

// Hard case 43: the redirect of a node that shuts down no longer counts for its priority, and
// stays until its VIPs have moved.
func TestHardCase43RedirectStays(t *testing.T) {
	l := newLab(t)
	k := l.placed()
	k.leaving.Store(true)
	k.linger.Store(true)
	k.serving(true)
	testkit.Await(t, "it not to count", func() bool { return !k.state().InPlace })
	l.reaches(l.client, vips[0], 6443, "9445")

	k.stop()
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
