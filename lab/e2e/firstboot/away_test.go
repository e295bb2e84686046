package firstboot

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// away is how long the registry is away; `make e2e` has it away for three minutes.
var away = flag.Duration("away", 0, "for how long the registry is away at least; in any case until both units have noticed")

// TestRegistryRefuses: no program listens at the registry's address.
func TestRegistryRefuses(t *testing.T) {
	testAway(t, "Error: initializing source docker://"+agentImage, 3, 15*time.Second, func(*site) {}, func(*site) {})
}

// TestRegistrySilent: packets to the registry are dropped.
func TestRegistrySilent(t *testing.T) {
	testkit.Variant(t)
	// podman waits for a minute, and the kernel for up to 16 s before its next attempt.
	testAway(t, "Failed, retrying in 1s", 1, 31*time.Second,
		func(s *site) {
			s.nft("table inet away { chain in { type filter hook input priority 0; tcp dport 5000 drop; }; }")
		},
		func(s *site) { s.nft("delete table inet away") })
}

// nft changes the rules of the registry's host.
func (s *site) nft(rules string) {
	s.t.Helper()
	testkit.Run(s.t, s.registry.Command(s.t.Context(), "nft", rules))
}

// testAway: the registry is unreachable when a node boots for the first time. Units continue
// trying, kubelet is not started without an address, and the node is ready soon after the
// registry returns (hard case 31).
func testAway(t *testing.T, failure string, times int, soon time.Duration, leave, comeBack func(*site)) {
	s := newSite(t)
	s.startDHCP(firstLease)
	leave(s)
	n := newNode(s, installConfig, nil)
	s.must(n.Boot())
	began := time.Now()
	for _, unit := range []string{"nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
		testkit.AwaitWithin(t, testkit.Patience+*away, unit+" to fail", func() bool {
			return strings.Count(n.journal(unit), failure) >= times && time.Since(began) >= *away
		}, func() string { return n.journal(unit) })
	}
	testkit.Equal(t, "", n.read(kubeletStarted))
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
	testkit.Promise(t, "kubelet after the registry's return", took, soon, testkit.Patience, watch.End())
}
