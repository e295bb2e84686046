package nodes

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// TestRightsNamed checks that the messages about missing rights name what the
// renderer emits.
func TestRightsNamed(t *testing.T) {
	for file, said := range map[string]rights{
		manifest.ClusterRole: nodesRights, manifest.ClusterRoleBinding: nodesRights,
		manifest.Role: endpointsRights, manifest.RoleBinding: endpointsRights,
	} {
		testkit.Contains(testkit.In(t, file), said.remedy, "manifests/"+file+".yaml")
		data, err := manifest.Render(file, manifest.Params{})
		testkit.Must(t, err)
		var object struct {
			Metadata struct{ Name, Namespace string }
		}
		testkit.Must(t, yaml.Unmarshal(data, &object))
		if object.Metadata.Name != rightsName || !strings.Contains(said.remedy, object.Metadata.Namespace) {
			t.Errorf("%s is %+v, not as in %q", file, object.Metadata, said.remedy)
		}
	}
}
