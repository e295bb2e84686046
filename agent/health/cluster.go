package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Checks are those that a node of that role, with those labels, needs for the
// VIPs that it can hold. labels may be nil, as for ClusterConfigSpec.Hosts. The
// bootstrap watches what it holds the API VIP for: when its API server starts to
// shut down, readyz turns 500 while lists still work for minutes (hard case 8).
func Checks(s *v1alpha1.ClusterConfigSpec, role string, labels map[string]string) []Check {
	var out []Check
	add := func(more ...Check) {
		for _, c := range more {
			// Groups of one role rest on the same services.
			if !slices.ContainsFunc(out, func(o Check) bool { return o.Name == c.Name }) {
				out = append(out, c)
			}
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		switch {
		case !s.Hosts(g, role, labels):
		case g.Role == v1alpha1.GroupIngress:
			port := cmp.Or(g.HealthPort, s.Ports.RouterHealth)
			add(
				get(RouterReady(g.Name), "http", port, "/healthz/ready", keepalived.Quick),
				get(RouterAnswers(g.Name), "http", port, "/healthz", keepalived.Quick))
		case g.Role == v1alpha1.GroupDNS:
			add(get(FactDNS, "http", s.Ports.CoreDNSHealth, "/health", keepalived.Quick))
		case role == v1alpha1.RoleBootstrap:
			add(
				get(FactAPI, "https", s.Ports.API, "/readyz", keepalived.Lenient),
				every(FactIronic, Connect(s.Ports.Ironic), keepalived.Quick))
		default:
			add(
				get(FactHAProxy, "http", s.Ports.HAProxyReady, "/haproxy_ready", keepalived.Brisk),
				ready(s.Ports.HAProxyReady),
				get(FactAPI, "https", s.Ports.API, "/readyz", keepalived.Patient),
				get(FactMachineConfig, "https", s.Ports.MachineConfig, "/healthz", keepalived.Patient))
		}
	}
	return out
}

func get(name, scheme string, port int, path string, pace keepalived.Pace) Check {
	h := NewHTTP(fmt.Sprintf("%s://localhost:%d%s", scheme, port, path))
	c := every(name, h.Probe, pace)
	c.Close = h.Close
	return c
}

// ready asks HAProxy whether any API server is ready. One that is ready counts at once,
// that none is counts after UnreadyAfter.
func ready(port int) Check {
	c := get(FactReady, "http", port, "/api_servers_ready", keepalived.Quick)
	c.Interval, c.Confirm = time.Second, time.Second
	c.Rise, c.Fall = 1, int(keepalived.UnreadyAfter/c.Confirm)
	return c
}

func every(name string, probe func(context.Context) error, pace keepalived.Pace) Check {
	return Check{
		Name: name, Probe: probe,
		Interval: pace.Interval, Confirm: pace.Confirm, Timeout: pace.Timeout,
		Rise: pace.Times, Fall: pace.Times,
	}
}
