package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestCluster runs a cluster of three control-plane nodes and a worker, each a network
// namespace with the files that vipgen renders for it, its agents and daemons started from the
// pod manifests, and a real API server on each control-plane node. Machine config servers,
// routers and the site's name server are stand-ins. Then it injects the faults of clusters, one
// after another.
func TestCluster(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	runSteps(t, []clusterStep{
		{"EveryBackendServes", testEveryBackendServes},
		{"Names", testNames},
		{"Observed", testObserved},
		{"Ports", testPorts},
		{"HardCase01StaleVIP", testStaleVIP},
		{"HardCase04InterfaceChanges", testInterfaceChanges},
		{"HardCase05NobodyHoldsTheVIP", testNobodyHolds},
		{"HardCase06Flush", testFlush},
		{"HardCase07APIServerRestarts", testAPIServerRestarts},
		{"HardCase45AllAPIServersFreeze", testAllAPIServersFreeze},
		{"HardCase15AddressChanges", testAddressChanges},
		{"HardCase16Upstreams", testUpstreams},
		{"HardCase18BackendComesAndGoes", testBackendComesAndGoes},
		{"HardCase22Refused", testRefused},
		{"HardCase24AgentKilled", testAgentKilled},
		{"ProberHangs", testProberHangs},
		{"PowerLoss", testPowerLoss},
		{"HardCase19APIAway", testAPIAway},
		{"AdditionalAPIVIPs", testAdditionalAPIVIPs},
	})
}

// clusterStep is a step with a cluster, independent of the others.
type clusterStep struct {
	name string
	run  func(*testing.T, *cluster)
}

// runSteps runs steps in order on one cluster. After a failed one the next has a new cluster:
// on the old one it would only fail the same way.
func runSteps(t *testing.T, steps []clusterStep) {
	c := newCluster(t)
	c.check(t)
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			testkit.Alone(t)
			c.t = t
			s.run(t, c)
			if !t.Failed() {
				c.check(t)
				// The VIP of the next step would move when a node becomes a better holder
				// again.
				awaitWell(t, c.Cluster)
			}
		}) {
			c.close()
			c = newCluster(t)
			c.check(t)
		}
	}
	c.t = t
}

// A client gets the certificate of the API server behind HAProxy, whose subject names the node.
func testEveryBackendServes(t *testing.T, c *cluster) {
	for _, url := range []string{"https://192.0.2.5:6443/readyz", "https://[2001:db8::5]:6443/readyz"} {
		served, failed := map[string]int{}, ""
		testkit.Await(t, "every API server to answer at "+url, func() bool {
			out, err := c.run("curl", "-sk", "-w", "\n%{certs}", url)
			body, certs, _ := strings.Cut(out, "\n")
			if err != nil || body != "ok" {
				failed = fmt.Sprintf("curl -k %s: %v\n%s", url, err, out)
				return false
			}
			for line := range strings.Lines(certs) {
				if _, name, ok := strings.Cut(line, "Subject:CN = "); ok {
					served[strings.TrimSpace(name)]++
				}
			}
			return len(served) == 3
		}, func() string { return fmt.Sprintf("answers of %v\n%s", served, failed) })
		show(t, "curl -k -w %{certs} "+url+"   # several times", fmt.Sprintf("ok, from %v", served))
		for _, n := range c.masters() {
			if served[n.Name] == 0 {
				t.Errorf("the API server of %s served no request: %v", n.Name, served)
			}
		}
	}
}

func testNames(t *testing.T, c *cluster) {
	for _, n := range c.nodes {
		at := n.Address()
		c.awaitDNS(t, at, "api."+domain, "A", "192.0.2.5")
		c.awaitDNS(t, at, "api."+domain, "AAAA", "2001:db8::5")
		c.awaitDNS(t, at, "api-int."+domain, "A", "192.0.2.5")
		c.awaitDNS(t, at, "console.apps."+domain, "A", "192.0.2.6")
		c.awaitDNS(t, at, "console.apps."+domain, "AAAA", "2001:db8::6")
		for _, other := range c.nodes {
			c.awaitDNS(t, at, other.Name+"."+domain, "A", other.Address().String())
		}
		c.awaitDNS(t, at, "registry.example.com", "A", "192.0.2.99")
		c.awaitDNS(t, at, "registry.example.com", "AAAA") // NOERROR, and no data (hard case 17)
		c.awaitDNS(t, at, "www.example.org", "A", "203.0.113.80")
		c.awaitDNS(t, at, "www.example.org", "AAAA")
	}
}
