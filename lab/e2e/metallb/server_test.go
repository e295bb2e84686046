package metallb

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A real API server, with MetalLB's and OpenShift's own CRDs, accepts every object as written;
// applied again, nothing changes.
func TestServer(t *testing.T) {
	s := newServer(t)
	cases := goldenCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			for _, o := range cases[name] {
				taken, err := s.apply(o)
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
					continue
				}
				for _, wrong := range differences("", o.Object, taken.Object) {
					t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), wrong)
				}
				again, err := s.apply(o)
				if err != nil || again.GetResourceVersion() != taken.GetResourceVersion() {
					t.Errorf("%s %s again: %v", o.GetKind(), o.GetName(), err)
				}
				defer s.remove(o)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		s := s.in(t)
		pool := pool("public", "198.51.100.0/24")
		unstructured.SetNestedField(pool.Object, true, "spec", "autoasign")
		if _, err := s.apply(pool); err == nil {
			t.Error("an unknown field was taken")
		}
	})
}

// differences returns the fields of want that got lacks, or in which it differs. It may have
// more fields: defaults.
func differences(path string, want, got any) (out []string) {
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for key := range want {
			out = append(out, differences(path+"."+key, want[key], fields[key])...)
		}
	case []any:
		items, _ := got.([]any)
		if len(items) != len(want) {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
		for i := range want {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), want[i], items[i])...)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
		}
	}
	return out
}
