package metallb

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"go.universe.tf/metallb/api/v1beta1"
	"go.universe.tf/metallb/api/v1beta2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// types are the Go types of the kinds that `vipgen metallb` prints.
var types = map[string]func() any{
	"metallb.io/v1beta1, Kind=IPAddressPool":    func() any { return &v1beta1.IPAddressPool{} },
	"metallb.io/v1beta1, Kind=L2Advertisement":  func() any { return &v1beta1.L2Advertisement{} },
	"metallb.io/v1beta1, Kind=BGPAdvertisement": func() any { return &v1beta1.BGPAdvertisement{} },
	"metallb.io/v1beta2, Kind=BGPPeer":          func() any { return &v1beta2.BGPPeer{} },
	"/v1, Kind=Service":                         func() any { return &corev1.Service{} },
	//lint:ignore SA1019 it is what --endpoints asks for
	"/v1, Kind=Endpoints":                     func() any { return &corev1.Endpoints{} },
	"discovery.k8s.io/v1, Kind=EndpointSlice": func() any { return &discoveryv1.EndpointSlice{} },
	"config.openshift.io/v1, Kind=APIServer":  func() any { return &configv1.APIServer{} },
}

// goldenCases returns the objects of each golden case of `vipgen metallb`, from the expected
// output, with its APIServer object last.
func goldenCases(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	dirs, err := filepath.Glob("../../../golden/metallb/*/expected")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	all := map[string][]*unstructured.Unstructured{}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		for _, document := range append(documents(t, dir, "objects.yaml"), documents(t, dir, "certificate.yaml")...) {
			all[name] = append(all[name], object(t, document))
		}
	}
	return all
}

// documents returns the documents of a file that hold more than comments.
func documents(t *testing.T, dir, name string) (out [][]byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	testkit.Must(t, err)
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		if bytes.Contains(document, []byte("\nkind: ")) {
			out = append(out, document)
		}
	}
	return out
}

func object(t *testing.T, document []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &o.Object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return o
}

// moduleDir is where a module's source is.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	testkit.Must(testkit.In(t, module), err)
	return strings.TrimSpace(string(out))
}

// Every object decodes into MetalLB's, Kubernetes' and OpenShift's own types without unknown
// fields.
func TestTypes(t *testing.T) {
	seen := map[string]bool{}
	for name, objects := range goldenCases(t) {
		for _, o := range objects {
			kind := o.GroupVersionKind().String()
			seen[kind] = true
			if types[kind] == nil {
				t.Fatalf("%s: no type for %s", name, kind)
			}
			testkit.Check(testkit.In(t, name, kind), decode(t, o))
		}
	}
	for kind := range types {
		if !seen[kind] {
			t.Errorf("no case has a %s", kind)
		}
	}
}

func decode(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	data, err := yaml.Marshal(o.Object)
	testkit.Must(t, err)
	return yaml.UnmarshalStrict(data, types[o.GroupVersionKind().String()]())
}
