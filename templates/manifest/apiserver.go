package manifest

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// NamedCertificate is a certificate for names, in a Secret of type kubernetes.io/tls in the
// namespace openshift-config.
type NamedCertificate struct {
	Names       []string `json:"names"`
	Certificate secret   `json:"servingCertificate"`
}

// secret goes by its name.
type secret struct {
	Name string `json:"name"`
}

// Certificate is that of a Secret, for names.
func Certificate(secretName string, names []string) NamedCertificate {
	return NamedCertificate{Names: names, Certificate: secret{secretName}}
}

// APIServer gives OpenShift's APIServer object that has those certificates, and no
// others, as YAML. It is a patch: what it does not name stays as it is in the cluster.
func APIServer(list ...NamedCertificate) ([]byte, error) {
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "APIServer",
		"metadata": map[string]any{"name": "cluster"},
		"spec":     map[string]any{"servingCerts": map[string]any{"namedCertificates": list}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the APIServer object: %w", err)
	}
	return out, nil
}
