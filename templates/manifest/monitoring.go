package manifest

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

// prometheusRule contains the alerts, the same for every cluster. It is no template,
// because its texts are templates of Prometheus.
//
//go:embed prometheusrule.yaml
var prometheusRule []byte

// dashboardJSON is a Grafana dashboard in the format that OpenShift's console also
// supports: rows of panels of the types graph, singlestat and table.
//
//go:embed dashboard.json
var dashboardJSON []byte

// dashboard returns a ConfigMap with the dashboard, in the namespace and with the label
// of OpenShift's console. The other label is that of Grafana's sidecar.
func dashboard() ([]byte, error) {
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "vipgen-dashboard", "namespace": "openshift-config-managed",
			"labels": map[string]string{"console.openshift.io/dashboard": "true", "grafana_dashboard": "1"},
		},
		"data": map[string]string{"vipgen.json": string(dashboardJSON)},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard: %w", err)
	}
	return out, nil
}
