package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/coredns"
	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/keepalived"
)

const moreAPIVIPs = vipgenYAML + `  additionalAPIVIPs:
  - name: mgmt
    vips: [192.0.2.17, "2001:db8::17"]
    names: [api-mgmt.example.net]
`

// More API VIPs come to a running cluster and go, by cluster.yaml alone: no container
// is started again, the first VIPs stay where they are, and nobody who asks there gets
// no answer.
func testAdditionalAPIVIPs(t *testing.T, c *cluster) {
	await(t, "every container to run", func() bool {
		for _, said := range c.containers() {
			if !strings.HasSuffix(said, "running true") {
				return false
			}
		}
		return true
	})
	before, holder := c.containers(), map[netip.Addr]*node{api: c.holder(t, api), api6: c.holder(t, api6)}
	reloads := c.reloads()
	var probes []asking
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
		await(t, n.Name+" to be as good for the new VIPs as for the first", func() bool {
			s, alive := published[keepalived.State](n, keepalived.StateName)
			return alive && len(s.Instances) == 4 && s.Instances[0].Priority == 68 && s.Instances[2].Priority == 65 && s.Instances[3].Priority == 65
		})
	}
	at := c.holder(t, more.VIPs[0])
	show(t, at.Name+"$ vipgen-agent status", at.exec("keepalived", "keepalived", "/vipgen/vipgen-agent", "status"))
	for _, n := range c.nodes {
		c.awaitDNS(t, n.Address(), "api-mgmt.example.net", "A", "192.0.2.17")
		c.awaitDNS(t, n.Address(), "api-mgmt.example.net", "AAAA", "2001:db8::17")
		c.awaitDNS(t, n.Address(), "api."+domain, "A", "192.0.2.5")
	}
	c.clientsVerify(t)
	for _, vip := range more.VIPs {
		p := c.startProbe(t, vip)
		p.answers(t, 40)
		p.expect(t, 0)
	}

	c.must(c.Apply(old))
	c.vips = was
	await(t, "the new VIPs to go", func() bool { return len(c.holders(more.VIPs[0]))+len(c.holders(more.VIPs[1])) == 0 })
	for _, n := range c.masters() {
		c.awaitRedirects(t, n, 4)
		await(t, n.Name+" to know nothing of the new VIPs", func() bool {
			s, alive := published[keepalived.State](n, keepalived.StateName)
			return alive && len(s.Instances) == 2 && !strings.Contains(fmt.Sprint(s.Facts), "mgmt")
		})
	}
	for _, n := range c.nodes {
		await(t, n.Name+" to leave the name to the site's name server", func() bool {
			_, status := c.dig(n.Address(), "api-mgmt.example.net", "A")
			return status == "NXDOMAIN"
		})
	}
	c.check(t)
	for i, p := range probes {
		p.answers(t, 20)
		p.expect(t, 0)
		if now := c.holder(t, p.vip); now != holder[p.vip] {
			t.Errorf("%v went from %s to %s (%d)", p.vip, holder[p.vip].Name, now.Name, i)
		}
	}
	for name, then := range before {
		if now := c.containers()[name]; now != then {
			t.Errorf("%s was started again: %s, %s", name, then, now)
		}
	}
	show(t, "containers started again, of all nodes", "none")
	show(t, "reloads of keepalived and CoreDNS by the two changes", fmt.Sprint(c.reloads()-reloads))
}

// clientsVerify: what clients can verify at more VIPs is the name that the API
// servers' certificate covers, and neither the new name nor an address.
func (c *cluster) clientsVerify(t *testing.T) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, c.API.CA().CertPEM, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		url, resolve string
		verified     bool
	}{
		{"https://api." + domain + ":6443/readyz", "api." + domain + ":6443:192.0.2.17", true},
		{"https://api." + domain + ":6443/readyz", "api." + domain + ":6443:[2001:db8::17]", true},
		{"https://api-mgmt.example.net:6443/readyz", "api-mgmt.example.net:6443:192.0.2.17", false},
		{"https://192.0.2.17:6443/readyz", "", false},
	} {
		args := []string{"-sS", "--cacert", ca}
		if tt.resolve != "" {
			args = append(args, "--resolve", tt.resolve)
		}
		out, err := c.run("curl", append(args, tt.url)...)
		show(t, "curl --cacert ca.crt "+strings.Join(args[3:], " ")+" "+tt.url, out)
		if verified := err == nil && out == "ok"; verified != tt.verified {
			t.Errorf("%s %s: verified %t, %v", tt.url, tt.resolve, verified, err)
		}
	}
}

// awaitRedirects waits until a node's redirect has so many rules: one for each VIP
// and hook.
func (c *cluster) awaitRedirects(t *testing.T, n *node, rules int) {
	t.Helper()
	await(t, fmt.Sprintf("%d rules on %s", rules, n.Name), func() bool {
		out, err := n.Command(t.Context(), "nft", "list", "table", "inet", "vipgen").CombinedOutput()
		p, alive := published[firewall.Published](n, firewall.StateName)
		return err == nil && strings.Count(string(out), "dnat to :9445") == rules && alive && 2*len(p.VIPs) == rules
	})
}

// containers say of every container when it was started, and how often.
func (c *cluster) containers() map[string]string {
	out := map[string]string{}
	for _, n := range c.nodes {
		for _, p := range n.Kubelet.Pods() {
			for _, k := range p.Containers {
				s := k.Status()
				out[n.Name+"/"+p.Name+"/"+k.Name] = fmt.Sprintf("started %s, restarts %d, running %t", s.Started.Format("15:04:05.000"), s.Restarts, s.Running)
			}
		}
	}
	return out
}

// reloads are those of CoreDNS and the configurations of keepalived that were applied.
func (c *cluster) reloads() (sum int) {
	for _, n := range c.nodes {
		if s, alive := published[keepalived.State](n, keepalived.StateName); alive {
			sum += s.Config.Applied
		}
		if s, alive := published[coredns.State](n, coredns.StateName); alive {
			sum += s.Reloads
		}
	}
	return sum
}
