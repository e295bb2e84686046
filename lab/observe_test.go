package lab

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
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

// curl asks on the node itself.
func (n *node) curl(url string) string {
	n.cluster.t.Helper()
	out, err := n.Command(n.cluster.t.Context(), "curl", "-s", url).Output()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// Every job says that it is well and who holds the VIPs, and logs more while it
// is asked to.
func testObserved(t *testing.T, c *cluster) {
	held := map[string][]string{}
	for _, n := range c.nodes {
		for job, port := range n.monitors() {
			testkit.Await(t, job+" on "+n.Name+" to be well", func() bool {
				return n.curl(fmt.Sprintf("http://127.0.0.1:%d/healthz", port)) == "ok\n"
			})
			metrics := n.curl(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
			if !strings.Contains(metrics, "\nvipgen_healthy 1\n") {
				t.Errorf("%s on %s: its metrics do not say that it is well:\n%s", job, n.Name, metrics)
			}
			for _, vip := range heldHere.FindAllStringSubmatch(metrics, -1) {
				held[vip[1]] = append(held[vip[1]], n.Name)
			}
		}
	}
	for _, vip := range c.vips {
		want := []string{c.holder(t, vip).Name}
		if got := held[vip.String()]; !slices.Equal(got, want) {
			t.Errorf("%v is held by %v according to the metrics, and by %v", vip, got, want)
		}
		show(t, "on every node: curl -s http://127.0.0.1:9455/metrics | grep "+vip.String(), fmt.Sprintf("vipgen_vip_held is 1 on %v", want))
	}
	n := c.holder(t, api)
	agent := func(args ...string) string {
		return n.exec(pod.Keepalived, "keepalived", append([]string{"/vipgen/vipgen-agent"}, args...)...)
	}
	// A container changes the level of its own job, the host that of all.
	for _, level := range []string{"DEBUG", "default"} {
		agent("log-level", level, "--job", "keepalived")
		if got := agent("log-level", "--job", "keepalived"); strings.TrimSpace(got) != level {
			t.Errorf("log level %q, want %s", got, level)
		}
	}
	for _, level := range []string{"DEBUG", "INFO"} {
		if err := n.Write(v1alpha1.RunDir+"/log-level", []byte(level)); err != nil {
			t.Fatal(err)
		}
		if got := agent("log-level"); strings.TrimSpace(got) != level {
			t.Errorf("log level %q, want %s", got, level)
		}
		testkit.Await(t, "keepalived to follow the log level", func() bool {
			log := n.container(pod.Keepalived, "keepalived").Log()
			return strings.Contains(log[strings.LastIndex(log, "log level changed"):], "level="+level)
		})
	}
	for job, in := range map[string]string{"keepalived": pod.Keepalived, "haproxy": pod.HAProxy, "coredns": pod.CoreDNS} {
		testkit.Await(t, job+" to follow the log level", func() bool {
			log := n.container(in, job).Log()
			return strings.Contains(log, `msg="log level changed" level=DEBUG before=INFO`) &&
				strings.Contains(log, `msg="log level changed" level=INFO before=DEBUG`)
		})
	}
}
