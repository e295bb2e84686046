package firewall

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// placed starts a Keeper and waits until the redirect is in place.
func (l *lab) placed() *keeperProc {
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

func TestOnlyWhileHAProxyServes(t *testing.T) {
	l := newLab(t)
	k := l.keep()
	k.redirect(api)
	k.serving(false)
	testkit.Await(t, "an empty table", func() bool { return l.present(Redirect{}) })
	l.reaches(l.client, vips[0], 6443, "6443")

	for range 2 {
		k.serving(true)
		testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
		l.reaches(l.client, vips[0], 6443, "9445")
		k.serving(false)
		testkit.Await(t, "its end", func() bool { return !k.state().InPlace })
		l.reaches(l.client, vips[0], 6443, "6443")
		l.reaches(l.node, vips[2], 6443, "6443")
	}
	if got := k.state(); got.Serving || got.Restored != 0 || got.Err != "" {
		t.Errorf("state %+v", got)
	}
}

func TestVIPsChangeWhileRunning(t *testing.T) {
	l := newLab(t)
	k := l.placed()
	k.redirect(Redirect{VIPs: vips[:1], From: 6443, To: 9445})
	testkit.Await(t, "the new redirect", func() bool { return len(k.state().VIPs) == 1 && k.state().InPlace })
	l.reaches(l.client, vips[0], 6443, "9445")
	l.reaches(l.client, vips[1], 6443, "6443")

	// An impossible redirect is refused, and the previous one stays.
	k.redirect(Redirect{VIPs: vips[:1], From: 6443, To: 6443})
	testkit.Await(t, "the refusal", func() bool { return strings.Contains(k.state().Err, "redirected to itself") })
	if k.state().InPlace {
		t.Error("in place, though it was refused")
	}
	l.reaches(l.client, vips[0], 6443, "9445")
	k.redirect(api)
	testkit.Await(t, "the right redirect", func() bool { return k.state().InPlace && k.state().Err == "" })
	testkit.Equal(t, 0, k.state().Restored)
}

func TestRulesEndWithTheProcess(t *testing.T) {
	l := newLab(t)
	l.load(foreign)
	before := l.nft("list", "ruleset")
	k := l.placed()
	k.end(syscall.SIGTERM)
	testkit.Equal(t, before, l.nft("list", "ruleset"))
	if !k.cmd.ProcessState.Success() {
		t.Errorf("ended with %v", k.cmd.ProcessState)
	}
	if k.state().InPlace {
		t.Error("the last state reports the redirect as in place")
	}
}

func TestNextProcessTakesOver(t *testing.T) {
	l := newLab(t)
	l.placed().end(syscall.SIGKILL)
	left := l.nft("-a", "list", "table", "inet", "vipgen")

	k := l.keep()
	k.redirect(api)
	k.serving(true)
	testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
	testkit.Equal(t, left, l.nft("-a", "list", "table", "inet", "vipgen"))
	k.end(syscall.SIGKILL)

	k = l.keep()
	k.redirect(api)
	k.serving(false)
	testkit.Await(t, "the end of the remaining connections", func() bool { return l.present(Redirect{}) })
	k.end(syscall.SIGTERM)
	if l.tableIsThere() {
		t.Error("the table outlived the process")
	}
}

func TestWithoutTheCapability(t *testing.T) {
	l := newLab(t)
	k := l.keepWith("-all")
	k.redirect(api)
	k.serving(true)
	testkit.Await(t, "a complaint", func() bool { return strings.Contains(k.state().Err, "needs the capability NET_ADMIN") })
	if k.state().InPlace {
		t.Error("in place")
	}
}

func TestHardCase25WithoutIPv6(t *testing.T) {
	l := newLab(t)
	l.do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) })
	tests := []struct {
		name string
		vips []netip.Addr
	}{
		{"IPv4 alone", vips[:2]},
		{"both families asked for", vips},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := l.keep()
			k.redirect(Redirect{VIPs: tt.vips, From: 6443, To: 9445})
			k.serving(true)
			testkit.Await(t, "the redirect", func() bool { return k.state().InPlace })
			for _, vip := range vips[:2] {
				l.reaches(l.client, vip, 6443, "9445")
				l.reaches(l.node, vip, 6443, "9445")
			}
			k.end(syscall.SIGTERM)
		})
	}
}
