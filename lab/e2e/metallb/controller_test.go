package metallb

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vipgen/vipgen/internal/testkit"
)

// MetalLB's own controller assigns the requested addresses to the Service of every case, from
// the pool that was rendered for them.
func TestController(t *testing.T) {
	s := newServer(t)
	controller := s.controller("metallb-system")
	cases := goldenCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if name == "none" { // MetalLB is in another namespace there
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			objects := cases[name]
			if name == "pool" {
				objects = append([]*unstructured.Unstructured{pool("public", "198.51.100.0/24")}, objects...)
			}
			var service *unstructured.Unstructured
			for _, o := range objects {
				defer s.mustApply(o)()
				if o.GetKind() == "Service" {
					service = o
				}
			}
			want := wanted(service)
			var got []string
			s.await("MetalLB to give the Service an address", func() bool {
				if controller.Ended() {
					t.Fatal("MetalLB's controller has ended")
				}
				got = s.given(service)
				return len(got) >= len(want)
			})
			slices.Sort(got) // MetalLB keeps no order
			slices.Sort(want)
			testkit.Equal(t, want, got)
		})
	}
	t.Run("a Service elsewhere does not get it", func(t *testing.T) { s.in(t).checkReserved(cases["l2"]) })
}

// checkReserved: a Service of another namespace that requests the address does not get it,
// although it is free; the API's Service does afterwards.
func (s *server) checkReserved(objects []*unstructured.Unstructured) {
	var service *unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == "Service" {
			service = o
			continue
		}
		defer s.mustApply(o)()
	}
	other := service.DeepCopy()
	other.SetNamespace("default")
	other.SetName("greedy")
	defer s.mustApply(other)()
	s.await("MetalLB to refuse", func() bool { return s.event("default", "greedy", "AllocationFailed") })
	testkit.Empty(s, s.given(other))
	defer s.mustApply(service)()
	s.await("the API's own Service to get it", func() bool { return len(s.given(service)) == 1 })
}

// event reports whether a Service has an event with a reason.
func (s *server) event(namespace, name, reason string) bool {
	s.Helper()
	list, err := s.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace).List(s.Context(), metav1.ListOptions{})
	testkit.Must(s, err)
	return slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool {
		about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		why, _, _ := unstructured.NestedString(o.Object, "reason")
		return about == name && why == reason
	})
}

// wanted returns the addresses that a Service requests.
func wanted(service *unstructured.Unstructured) []string {
	for _, prefix := range []string{"metallb.io", "metallb.universe.tf"} {
		if list := service.GetAnnotations()[prefix+"/loadBalancerIPs"]; list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// given returns its assigned addresses.
func (s *server) given(service *unstructured.Unstructured) (out []string) {
	s.Helper()
	o, err := s.resource(service).Get(s.Context(), service.GetName(), metav1.GetOptions{})
	testkit.Must(s, err)
	got := &corev1.Service{}
	testkit.Must(s, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, got))
	for _, i := range got.Status.LoadBalancer.Ingress {
		out = append(out, i.IP)
	}
	return out
}

func pool(name, addresses string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
		"metadata": map[string]any{"name": name, "namespace": "metallb-system"}, "spec": map[string]any{"addresses": []any{addresses}}}}
}
