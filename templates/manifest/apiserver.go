package manifest

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// NamedCertificate is a certificate for names, in a Secret of type kubernetes.io/tls in
// the namespace openshift-config.
type NamedCertificate struct {
	Names       []string `json:"names"`
	Certificate secret   `json:"servingCertificate"`
}

type secret struct {
	Name string `json:"name"`
}

// Certificate returns the certificate of a Secret, for names.
func Certificate(secretName string, names []string) NamedCertificate {
	return NamedCertificate{Names: names, Certificate: secret{secretName}}
}

// APIServer returns OpenShift's APIServer object with exactly these certificates, as
// YAML. It is a patch: other fields stay unchanged in the cluster.
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
