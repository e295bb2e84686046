// Package manifest makes the cluster manifests that go with what nodes get: the
// namespace of the mirror pods, the agent's rights, and the node disruption policy; and
// the APIServer object, as far as API servers show certificates for names that the
// cluster's own one does not have.
package manifest

import (
	"embed"

	"github.com/vipgen/vipgen/templates"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Names of the manifests, which are also their file names without ".yaml". Each
// is one object, since installers read one object a file.
const (
	Namespace            = "namespace"
	ClusterRole          = "clusterrole"
	ClusterRoleBinding   = "clusterrolebinding"
	Role                 = "role"
	RoleBinding          = "rolebinding"
	NodeDisruptionPolicy = "node-disruption-policy"
)

// Params is what the manifest templates are executed with.
type Params struct {
	// Namespace is where the mirror pods appear.
	Namespace string
	// LiveFiles are files on the node that the agent applies by itself.
	LiveFiles []string
}

// Render makes the manifest with that name.
func Render(name string, p Params) ([]byte, error) {
	return parsed.Run(name+".yaml", p)
}
