package lab

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// monitors are the ports at which a node's jobs serve metrics and health.
func (n *node) monitors() map[string]int {
	p := v1alpha1.DefaultPorts
	out := map[string]int{"keepalived": p.KeepalivedMonitor, "coredns": p.CoreDNSMonitor, "mdns": p.MDNSMonitor}
	if n.Role == "master" {
		out["haproxy"], out["firewall"] = p.HAProxyMonitor, p.FirewallMonitor
	}
	return out
}

var heldHere = regexp.MustCompile(`(?m)^vipgen_vip_held\{vip="(.+?)",.*\} 1$`)

// curl sends a request on the node itself.
func (n *node) curl(url string) string {
	n.cluster.t.Helper()
	out, err := n.Command(n.cluster.t.Context(), "curl", "-s", url).Output()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// metrics returns the metrics of a job by its port.
func (n *node) metrics(port int) string {
	n.cluster.t.Helper()
	return n.curl(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
}

// Every job reports its health and the holders of the VIPs.
func testObserved(t *testing.T, c *cluster) {
	for _, n := range c.nodes {
		for job, port := range n.monitors() {
			metrics := ""
			testkit.Await(t, job+" on "+n.Name+" to be well", func() bool {
				metrics = n.metrics(port)
				return n.curl(fmt.Sprintf("http://127.0.0.1:%d/healthz", port)) == "ok\n" && strings.Contains(metrics, "\nvipgen_healthy 1\n")
			}, func() string { return metrics })
		}
	}
	for _, vip := range c.vips {
		var want, got []string
		testkit.Await(t, fmt.Sprintf("the metrics to show the holder of %v", vip), func() bool {
			want, got = []string{c.holder(t, vip).Name}, c.heldByMetrics(vip)
			return slices.Equal(got, want)
		}, func() string { return fmt.Sprintf("%v according to the metrics, and %v", got, want) })
		show(t, "on every node: curl -s http://127.0.0.1:9455/metrics | grep "+vip.String(), fmt.Sprintf("vipgen_vip_held is 1 on %v", want))
	}
}

// heldByMetrics returns the nodes that hold the VIP by their metrics.
func (c *cluster) heldByMetrics(vip netip.Addr) (out []string) {
	c.t.Helper()
	for _, n := range c.nodes {
		for _, port := range n.monitors() {
			for _, held := range heldHere.FindAllStringSubmatch(n.metrics(port), -1) {
				if held[1] == vip.String() {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}
