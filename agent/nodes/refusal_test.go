package nodes

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/templates/manifest"
)

// TestRightsNamed checks that the messages about missing rights name what the
// renderer emits.
func TestRightsNamed(t *testing.T) {
	for file, said := range map[string]rights{
		manifest.ClusterRole: nodesRights, manifest.ClusterRoleBinding: nodesRights,
		manifest.Role: endpointsRights, manifest.RoleBinding: endpointsRights,
	} {
		if !strings.Contains(said.remedy, "manifests/"+file+".yaml") {
			t.Errorf("%q does not name %s", said.remedy, file)
		}
		data, err := manifest.Render(file, manifest.Params{})
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		if object.Metadata.Name != rightsName || !strings.Contains(said.remedy, object.Metadata.Namespace) {
			t.Errorf("%s is %+v, not as in %q", file, object.Metadata, said.remedy)
		}
	}
}
