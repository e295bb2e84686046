package metallb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// crdFiles are MetalLB's CRDs, and OpenShift's of the APIServer object.
func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleDir(t, "go.universe.tf/metallb"), "config/crd/bases/*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d CRDs of MetalLB, %v", len(files), err)
	}
	return append(files, filepath.Join(moduleDir(t, "github.com/openshift/api"), "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml"))
}

func readCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	testkit.Must(t, yaml.Unmarshal(data, crd))
	return crd
}

// schemas validate objects against the CRDs, by kind in the form of GroupVersionKind.
type schemas map[string]func(o *unstructured.Unstructured) []string

func readSchemas(t *testing.T) schemas {
	t.Helper()
	out := schemas{}
	for _, file := range crdFiles(t) {
		crd := readCRD(t, file)
		for _, v := range crd.Spec.Versions {
			kind := fmt.Sprintf("%s/%s, Kind=%s", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
			internal := &apiextensions.JSONSchemaProps{}
			testkit.Must(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, internal, nil))
			structural, err := schema.NewStructural(internal)
			testkit.Must(t, err)
			validator, _, err := validation.NewSchemaValidator(internal)
			testkit.Must(t, err)
			out[kind] = func(o *unstructured.Unstructured) (wrong []string) {
				for _, e := range validation.ValidateCustomResource(nil, o.Object, validator) {
					wrong = append(wrong, e.Error())
				}
				options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
				for _, path := range pruning.PruneWithOptions(o.DeepCopy().Object, structural, true, options) {
					wrong = append(wrong, path+": unknown field")
				}
				return wrong
			}
		}
	}
	return out
}

// Every object of a kind that has a CRD is valid by its schema.
func TestSchemas(t *testing.T) {
	all := readSchemas(t)
	checked := map[string]bool{}
	for name, objects := range goldenCases(t) {
		for _, o := range objects {
			kind := o.GroupVersionKind().String()
			if all[kind] == nil {
				continue
			}
			checked[kind] = true
			for _, wrong := range all[kind](o) {
				t.Errorf("%s: %s: %s", name, kind, wrong)
			}
		}
	}
	for kind := range types {
		if strings.HasPrefix(kind, "metallb.io/") && !checked[kind] || strings.HasPrefix(kind, "config.openshift.io/") && !checked[kind] {
			t.Errorf("no %s was checked", kind)
		}
	}
}

// An invalid object is rejected by the types, the schema, or both.
func TestWrongObjects(t *testing.T) {
	cases, all := goldenCases(t), readSchemas(t)
	tests := []struct {
		kind           string
		field          []string
		value          any
		types, schemas bool // rejected by
	}{
		{"IPAddressPool", []string{"spec", "adresses"}, []any{"192.0.2.1/32"}, true, true},
		{"IPAddressPool", []string{"spec", "addresses"}, "192.0.2.1/32", true, true},
		{"IPAddressPool", []string{"spec", "serviceAllocation", "namespace"}, []any{"a"}, true, true},
		{"L2Advertisement", []string{"spec", "ipAddressPools"}, "a", true, true},
		{"BGPPeer", []string{"spec", "peerPort"}, int64(20000), false, true},
		{"BGPPeer", []string{"spec", "myASN"}, "64500", true, true},
		{"BGPPeer", []string{"spec", "myASN"}, nil, false, true},
		{"BGPAdvertisement", []string{"spec", "peers"}, "a", true, true},
		{"EndpointSlice", []string{"port"}, []any{}, true, false},
		{"APIServer", []string{"spec", "servingCerts", "namedCertificate"}, []any{}, true, true},
	}
	for _, tt := range tests {
		o := first(t, cases, tt.kind).DeepCopy()
		testkit.Must(t, unstructured.SetNestedField(o.Object, tt.value, tt.field...))
		if tt.value == nil {
			unstructured.RemoveNestedField(o.Object, tt.field...)
		}
		if err := decode(t, o); (err != nil) != tt.types {
			t.Errorf("%s %v: result of the types: %v", tt.kind, tt.field, err)
		}
		if check := all[o.GroupVersionKind().String()]; check != nil {
			if wrong := check(o); (len(wrong) > 0) != tt.schemas {
				t.Errorf("%s %v: result of the schema: %q", tt.kind, tt.field, wrong)
			}
		}
	}
}

// first returns an object of a kind: of the case with routers, a list of nodes, and a
// certificate.
func first(t *testing.T, cases map[string][]*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, name := range []string{"bgp", "hostnames"} {
		for _, o := range cases[name] {
			if o.GetKind() == kind {
				return o
			}
		}
	}
	t.Fatalf("no %s", kind)
	return nil
}
