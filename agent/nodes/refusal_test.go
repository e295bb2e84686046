package nodes

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/templates/manifest"
)

// TestRightsNamed checks that the message about missing rights names what the
// renderer emits.
func TestRightsNamed(t *testing.T) {
	for _, file := range []string{manifest.ClusterRole, manifest.ClusterRoleBinding} {
		if !strings.Contains(rightsFiles, "manifests/"+file+".yaml") {
			t.Errorf("%q does not name %s", rightsFiles, file)
		}
		data, err := manifest.Render(file, manifest.Params{})
		if err != nil {
			t.Fatal(err)
		}
		var object struct{ Metadata struct{ Name string } }
		if err := yaml.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		if object.Metadata.Name != rightsName {
			t.Errorf("%s is called %q, not %q", file, object.Metadata.Name, rightsName)
		}
	}
}
