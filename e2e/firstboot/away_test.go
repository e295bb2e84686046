package firstboot

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// away is for how long the registry is away; `make e2e` has it away for three minutes.
var away = flag.Duration("away", 0, "for how long the registry is away at least; both units have failed three times by then in any case")

// Both are how a registry is away: nobody listens, or its host is off.
func TestRegistryAwayRefuses(t *testing.T) { testAway(t, func(*site) {}, func(*site) {}) }

func TestRegistryAwaySilent(t *testing.T) {
	testAway(t,
		func(s *site) { s.must(s.registry.SetLink(false)) },
		func(s *site) { s.must(s.registry.SetLink(true)) })
}

// testAway: the registry is away when a node boots for the first time. Units go on
// trying, kubelet is not started without an address, and all is well within 15 s of the
// registry's return (hard case 31).
func testAway(t *testing.T, leave, comeBack func(*site)) {
	s := newSite(t)
	s.startDHCP(firstLease)
	leave(s)
	n := newNode(s, installConfig, nil)
	s.must(n.Boot())
	began := time.Now()
	for _, unit := range []string{"nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
		testkit.AwaitWithin(t, testkit.Patience+*away, unit+" to have failed three times", func() bool {
			return strings.Count(n.journal(unit), "Error: initializing source docker://"+agentImage) >= 3 && time.Since(began) >= *away
		}, func() string { return n.journal(unit) })
	}
	if got := n.read(kubeletStarted); got != "" {
		t.Errorf("kubelet was started with %s", got)
	}
	if n.active(target) || n.run("systemctl", "is-failed", target) == "failed" {
		t.Errorf("%s does not wait", target)
	}

	watch := testkit.StartStopwatch()
	comeBack(s)
	s.startRegistry()
	back := time.Now()
	n.awaitKubelet(nodeAddr + " " + nodeAddr)
	n.await("/etc/resolv.conf", resolvConf(nodeAddr, "site.example", siteAddr))
	took := time.Since(back)
	t.Logf("kubelet was started %v after the registry was back, which was away for %v", took, back.Sub(began))
	testkit.Promise(t, "kubelet after the registry's return", took, 15*time.Second, testkit.Patience, watch.End())
}
