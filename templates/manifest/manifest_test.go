package manifest

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestRender(t *testing.T) {
	p := Params{Namespace: "openshift-vipgen-infra", LiveFiles: []string{"/etc/a", "/etc/b"}}
	for name, kind := range map[string]string{
		Namespace: "Namespace", ClusterRole: "ClusterRole", ClusterRoleBinding: "ClusterRoleBinding",
		Role: "Role", RoleBinding: "RoleBinding", NodeDisruptionPolicy: "MachineConfiguration",
	} {
		text, err := Render(name, p)
		testkit.Must(t, err)
		var object struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Metadata   map[string]any `json:"metadata"`
		}
		if err := yaml.Unmarshal(text, &object); err != nil || object.Kind != kind || object.APIVersion == "" || object.Metadata["name"] == nil {
			t.Errorf("%s: %v, %+v", name, err, object)
		}
	}
	if text, err := Render("nope", p); err == nil {
		t.Errorf("no error for a manifest that does not exist: %q", text)
	}
}
