package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestMetalLB runs `vipgen metallb` on every case of the folder metallb: command is the command
// line, expected the output. lab/e2e/metallb tests the output with MetalLB.
func TestMetalLB(t *testing.T) {
	commands, err := filepath.Glob("metallb/*/command")
	if err != nil || len(commands) < 10 {
		t.Fatalf("%d cases, %v", len(commands), err)
	}
	for _, command := range commands {
		dir := filepath.Dir(command)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := append([]string{"metallb"}, readFlags(t, command)...)
			objects, report := vipgen(t, args...)
			certificate, _ := vipgen(t, append(args, "--certificate")...)
			got := files{"objects.yaml": objects, "certificate.yaml": certificate}
			if len(report) > 0 {
				got["report.txt"] = report
			}
			checkMetalLBFiles(t, filepath.Join(dir, "expected"), got)
			checkForwards(t, objects)
			if bytes.Contains(certificate, []byte("\nkind: APIServer")) {
				var server configv1.APIServer
				testkit.Check(t, yaml.UnmarshalStrict(certificate, &server))
			}
		})
	}
}

func checkMetalLBFiles(t *testing.T, dir string, got files) {
	t.Helper()
	if *update {
		testkit.Must(t, os.RemoveAll(dir))
		writeTree(t, dir, got)
	}
	testkit.Equal(t, readTree(t, dir), got)
}

// checkForwards: the Service's endpoints are those that Kubernetes derives.
func checkForwards(t *testing.T, stream []byte) {
	t.Helper()
	var service corev1.Service
	var slicesOf []discoveryv1.EndpointSlice
	//lint:ignore SA1019 it is what --endpoints asks for
	var endpoints *corev1.Endpoints
	for _, document := range bytes.Split(stream, []byte("---\n"))[1:] {
		var kind struct{ Kind string }
		var err error
		testkit.Must(t, yaml.Unmarshal(document, &kind))
		switch kind.Kind {
		case "Service":
			err = yaml.UnmarshalStrict(document, &service)
		case "EndpointSlice":
			slicesOf = append(slicesOf, discoveryv1.EndpointSlice{})
			err = yaml.UnmarshalStrict(document, &slicesOf[len(slicesOf)-1])
		case "Endpoints":
			//lint:ignore SA1019 the same
			endpoints = &corev1.Endpoints{}
			err = yaml.UnmarshalStrict(document, endpoints)
		}
		testkit.Check(testkit.In(t, kind.Kind), err)
	}
	port := service.Spec.Ports[0]
	for _, s := range slicesOf {
		if s.Labels[discoveryv1.LabelServiceName] != service.Name || s.Namespace != service.Namespace {
			t.Errorf("slice %s is for %q", s.Name, s.Labels[discoveryv1.LabelServiceName])
		}
		if *s.Ports[0].Name != port.Name || *s.Ports[0].Port != port.TargetPort.IntVal || *s.Ports[0].Protocol != port.Protocol || len(s.Endpoints) == 0 {
			t.Errorf("slice %s has %+v and %d endpoints, the Service %+v", s.Name, s.Ports[0], len(s.Endpoints), port)
		}
		if !slices.Contains(service.Spec.IPFamilies, corev1.IPFamily(s.AddressType)) {
			t.Errorf("slice %s is of %s, the Service of %s", s.Name, s.AddressType, service.Spec.IPFamilies)
		}
	}
	switch {
	case len(service.Spec.Selector) > 0:
		if len(slicesOf) > 0 || endpoints != nil {
			t.Error("a selector, and a list as well")
		}
	case endpoints != nil:
		if got := endpoints.Subsets[0].Ports[0]; endpoints.Name != service.Name || endpoints.Namespace != service.Namespace || got.Name != port.Name || got.Port != port.TargetPort.IntVal || len(slicesOf) > 0 {
			t.Errorf("endpoints %s with %+v, the Service %s with %+v", endpoints.Name, got, service.Name, port)
		}
	case len(slicesOf) != len(service.Spec.IPFamilies):
		t.Errorf("%d slices for %s", len(slicesOf), service.Spec.IPFamilies)
	}
}
