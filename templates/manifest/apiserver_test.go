package manifest

import (
	"reflect"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestAPIServer(t *testing.T) {
	data, err := APIServer(
		Certificate("api-mgmt", []string{"api-mgmt.demo.example.com", "*.corp.example"}),
		Certificate("api-partner", []string{"kube.partner.example.net"}),
	)
	testkit.Must(t, err)
	var got configv1.APIServer
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if got.APIVersion != configv1.GroupVersion.String() || got.Kind != "APIServer" || got.Name != "cluster" {
		t.Errorf("%s %s %s", got.APIVersion, got.Kind, got.Name)
	}
	want := []configv1.APIServerNamedServingCert{
		{Names: []string{"api-mgmt.demo.example.com", "*.corp.example"}, ServingCertificate: configv1.SecretNameReference{Name: "api-mgmt"}},
		{Names: []string{"kube.partner.example.net"}, ServingCertificate: configv1.SecretNameReference{Name: "api-partner"}},
	}
	if now := got.Spec.ServingCerts.NamedCertificates; !reflect.DeepEqual(now, want) {
		t.Errorf("got %+v", now)
	}
}
