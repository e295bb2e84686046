// Package apiserver makes OpenShift's APIServer object, as far as the API servers
// show certificates for names that the cluster's own one does not have.
package apiserver

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Named is a certificate for names, in a Secret of type kubernetes.io/tls in the
// namespace openshift-config.
type Named struct {
	Names       []string `json:"names"`
	Certificate Secret   `json:"servingCertificate"`
}

// Secret goes by its name.
type Secret struct {
	Name string `json:"name"`
}

// Object gives the object that has those certificates, and no others, as YAML. It
// is a patch: what it does not name stays as it is in the cluster.
func Object(list ...Named) ([]byte, error) {
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
