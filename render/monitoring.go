package render

import (
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/manifest"
)

// monitoring returns the names of the manifests with alerts and the dashboard, and of those
// that let OpenShift's Prometheus read reachable metrics.
func (c *Cluster) monitoring() []string {
	names := []string{manifest.MonitoringNamespace}
	if c.Config.Spec.Metrics == v1alpha1.MetricsOnNode {
		names = append(names, manifest.MonitoringRole, manifest.MonitoringRoleBinding, manifest.PodMonitor)
	}
	return append(names, manifest.PrometheusRule, manifest.Dashboard)
}

// Monitored returns the containers whose agents serve metrics on nodes of a role, with their
// ports.
func (c *Cluster) Monitored(role string) (out []manifest.Monitored) {
	ports, pods := c.Config.Spec.Ports, c.Pods(role)
	for _, of := range []struct {
		pod string
		manifest.Monitored
	}{
		{manifest.HAProxy, manifest.Monitored{Container: "haproxy", Port: ports.HAProxyMonitor}},
		{manifest.Keepalived, manifest.Monitored{Container: "keepalived", Port: ports.KeepalivedMonitor}},
		{manifest.BGP, manifest.Monitored{Container: "bgp", Port: ports.BGPMonitor}},
		{manifest.HAProxy, manifest.Monitored{Container: "firewall", Port: ports.FirewallMonitor}},
		{manifest.CoreDNS, manifest.Monitored{Container: "coredns", Port: ports.CoreDNSMonitor}},
		{manifest.MDNS, manifest.Monitored{Container: "mdns-publisher", Port: ports.MDNSMonitor}},
	} {
		if slices.Contains(pods, of.pod) {
			out = append(out, of.Monitored)
		}
	}
	return out
}
