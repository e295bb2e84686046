package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

var moreAPIVIPs = vipgenYAML + `  additionalAPIVIPs:
  - name: mgmt
    vips: [192.0.2.17, "2001:db8::17"]
    names: [api-mgmt.example.net]
`

// API VIPs are added to a running cluster and removed, by cluster.yaml alone: no container
// restarts, the first VIPs stay on their nodes, and no request of clients there is lost.
func testAdditionalAPIVIPs(t *testing.T, c *cluster) {
	before, holder := c.restarts(), map[netip.Addr]*node{api: c.holder(t, api), api6: c.holder(t, api6)}
	var probes []vipProbe
	for _, vip := range []netip.Addr{api, api6} {
		probes = append(probes, c.startProbe(t, vip))
	}
	old, was := c.Rendered(), c.vips
	changed := loadWith(t, demo, moreAPIVIPs)
	more := changed.Config.Spec.Groups[len(changed.Config.Spec.Groups)-1]

	c.must(c.Apply(changed))
	c.vips = vipsOf(changed)
	c.check(t)
	for _, n := range c.masters() {
		c.awaitRedirects(t, n, 8)
		testkit.Await(t, n.Name+" to have the same priority for the new VIPs", func() bool {
			s, alive := published[state.Keepalived](n)
			return alive && len(s.Instances) == 4 && s.Instances[0].Priority == 68 && s.Instances[2].Priority == 68 && s.Instances[3].Priority == 68
		})
	}
	for _, n := range c.nodes {
		c.awaitDNS(t, n.Address(), "api-mgmt.example.net", "A", "192.0.2.17")
		c.awaitDNS(t, n.Address(), "api-mgmt.example.net", "AAAA", "2001:db8::17")
		c.awaitDNS(t, n.Address(), "api."+domain, "A", "192.0.2.5")
	}
	for _, vip := range more.VIPs {
		p := c.startProbe(t, vip)
		p.answers(t, 40)
		p.expect(t, 0)
	}

	c.must(c.Apply(old))
	c.vips = was
	testkit.Await(t, "the new VIPs to go", func() bool { return len(c.holders(more.VIPs[0]))+len(c.holders(more.VIPs[1])) == 0 })
	for _, n := range c.masters() {
		c.awaitRedirects(t, n, 4)
		testkit.Await(t, n.Name+" to know nothing of the new VIPs", func() bool {
			s, alive := published[state.Keepalived](n)
			return alive && len(s.Instances) == 2 && !strings.Contains(fmt.Sprint(s.Facts), "mgmt")
		})
	}
	for _, n := range c.nodes {
		testkit.Await(t, n.Name+" to leave the name to the site's name server", func() bool {
			_, status := c.dig(n.Address(), "api-mgmt.example.net", "A")
			return status == "NXDOMAIN"
		})
	}
	c.check(t)
	for _, p := range probes {
		p.answers(t, 20)
		p.expect(t, 0)
		p.stays(t, holder[p.vip], c.holder(t, p.vip))
	}
	testkit.Equal(t, before, c.restarts())
}

// awaitRedirects waits until a node's redirect has a number of rules: one for each VIP and
// hook.
func (c *cluster) awaitRedirects(t *testing.T, n *node, rules int) {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("%d rules on %s", rules, n.Name), func() bool {
		out, err := n.Command(t.Context(), "nft", "list", "table", "inet", "vipgen").CombinedOutput()
		p, alive := published[state.Firewall](n)
		return err == nil && strings.Count(string(out), "dnat ip") == rules && alive && 2*len(p.VIPs) == rules
	})
}
