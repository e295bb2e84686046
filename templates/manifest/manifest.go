// Package manifest renders manifests: static pods of nodes, and cluster manifests, which are the
// namespace of the mirror pods, the agent's RBAC, the node disruption policy, the monitoring of
// the agents by Prometheus, and the APIServer object with additional certificates.
package manifest

import (
	"embed"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Names of the cluster manifests, and of their files without ".yaml". Each is one object, because
// installers read one object per file.
const (
	Namespace            = "namespace"
	ClusterRole          = "clusterrole"
	ClusterRoleBinding   = "clusterrolebinding"
	Role                 = "role"
	RoleBinding          = "rolebinding"
	NodeDisruptionPolicy = "node-disruption-policy"

	MonitoringNamespace   = "monitoring-namespace"
	MonitoringRole        = "monitoring-role"
	MonitoringRoleBinding = "monitoring-rolebinding"
	PodMonitor            = "podmonitor"
	PrometheusRule        = "prometheusrule"
	Dashboard             = "dashboard"
)

// Params is the data of the cluster manifests' templates.
type Params struct {
	// Namespace is the namespace of the mirror pods.
	Namespace string
	// LiveFiles are files on the node that the agent applies by itself.
	LiveFiles []string
	// Monitored are the containers whose agents' metrics are scraped.
	Monitored []Monitored
}

// Monitored is a container with the port of its agent's metrics.
type Monitored struct {
	Container string
	Port      int
}

// Render renders a cluster manifest by name.
func Render(name string, p Params) ([]byte, error) {
	switch name {
	case PrometheusRule:
		return prometheusRule, nil
	case Dashboard:
		return dashboard()
	}
	return parsed.Run(name+".yaml", p)
}
