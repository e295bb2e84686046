package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Checks returns the checks that a node of a role, with these labels, needs for the VIPs
// that it can hold. labels may be nil, as for ClusterConfigSpec.Hosts. The bootstrap
// checks the services for which it holds the API VIP: when its API server starts to shut
// down, readyz turns 500 while lists still work for minutes (hard case 8).
func Checks(s *v1alpha1.ClusterConfigSpec, role string, labels map[string]string) []Check {
	var out []Check
	add := func(more ...Check) {
		for _, c := range more {
			// Groups of one role share services.
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
				newHTTPCheck(RouterReady(g.Name), "http", port, "/healthz/ready", vrrp.ServiceProbe),
				newHTTPCheck(routerAnswers(g.Name), "http", port, "/healthz", vrrp.ServiceProbe))
		case g.Role == v1alpha1.GroupDNS:
			add(newHTTPCheck(FactDNS, "http", s.Ports.CoreDNSHealth, "/health", vrrp.ServiceProbe))
		case role == v1alpha1.RoleBootstrap:
			add(
				newHTTPCheck(FactAPI, "https", s.Ports.API, "/readyz", vrrp.BootstrapProbe),
				newCheck(FactIronic, connect(s.Ports.Ironic), vrrp.ServiceProbe))
		default:
			add(
				newHTTPCheck(FactHAProxy, "http", s.Ports.HAProxyReady, "/haproxy_ready", vrrp.HAProxyProbe),
				newReadyCheck(s.Ports.HAProxyReady),
				newHTTPCheck(FactAPI, "https", s.Ports.API, "/readyz", vrrp.APIServerProbe),
				newHTTPCheck(factMachineConfig, "https", s.Ports.MachineConfig, "/healthz", vrrp.APIServerProbe))
		}
	}
	return out
}

func newHTTPCheck(name, scheme string, port int, path string, pace vrrp.ProbeTiming) Check {
	h := NewHTTP(fmt.Sprintf("%s://localhost:%d%s", scheme, port, path))
	c := newCheck(name, h.Probe, pace)
	c.Close = h.Close
	return c
}

// newReadyCheck returns the check whether HAProxy sees any ready API server. A ready one
// counts at once, none only after UnreadyAfter.
func newReadyCheck(port int) Check {
	c := newHTTPCheck(factReady, "http", port, "/api_servers_ready", vrrp.ServiceProbe)
	c.Interval, c.Confirm = time.Second, time.Second
	c.Rise, c.Fall = 1, int(vrrp.UnreadyAfter/c.Confirm)
	return c
}

func newCheck(name string, probe func(context.Context) error, pace vrrp.ProbeTiming) Check {
	return Check{
		Name: name, Probe: probe,
		Interval: pace.Interval, Confirm: pace.Confirm, Timeout: pace.Timeout,
		Rise: pace.Times, Fall: pace.Times,
	}
}
