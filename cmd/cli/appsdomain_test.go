package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/testkit"
)

const clusterIngress = "apiVersion: config.openshift.io/v1\nkind: Ingress\nmetadata: {name: cluster}\nspec:\n  domain: apps.demo.example.com\n  appsDomain: apps.example.net\n"

// The domains of routes in an asset directory are compared with the names that nodes resolve.
func TestDomainsOfAnAssetDirectory(t *testing.T) {
	const warning = `ocp/manifests/cluster-ingress-02-config.yml:6:15: warning: spec.appsDomain: found apps.example.net, expected a domain that the cluster's nodes resolve`
	for name, tt := range map[string]struct {
		files map[string]string
		warns bool
	}{
		"nobody knows of it":           {nil, true},
		"vipgen.yaml has it":           {map[string]string{"vipgen.yaml": fleetHead + "spec: {appsDomain: apps.example.net}\n"}, false},
		"a copy beside":                {map[string]string{input.ClusterIngressName: clusterIngress}, false},
		"an ingress controller has it": {map[string]string{"vipgen.yaml": fleetHead + "spec: {ingress: [{name: a, vips: [192.0.2.9], domains: [apps.example.net]}]}\n"}, false},
		"its names lead elsewhere":     {map[string]string{"vipgen.yaml": fleetHead + "spec: {dns: {records: [{name: '*.apps.example.net', addresses: [198.51.100.1]}]}}\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			good(t)
			lay(t, map[string]string{"ocp/manifests/" + input.ClusterIngressName: clusterIngress})
			lay(t, tt.files)
			got := exits(t, command.OK, "render", "--allow-default-image", "--install-dir", "ocp")
			testkit.Equal(t, tt.warns, strings.Contains(got.report, warning))
		})
	}
	good(t)
	lay(t, map[string]string{"ocp/manifests/" + input.ClusterIngressName: "kind: Other\n"})
	exits(t, command.Input, "render", "--allow-default-image", "--install-dir", "ocp").reports(`found "Other", expected "Ingress"`)
}

// Names below appsDomain resolve to the controller that lists it, else to the default one; a
// record overrides both files.
func TestAppsDomainController(t *testing.T) {
	for spec, want := range map[string]string{
		"appsDomain: apps.example.net": "192.0.2.3",
		"appsDomain: apps.example.net, ingress: [{name: a, vips: [192.0.2.9], domains: [apps.example.net]}]":                         "192.0.2.9",
		"appsDomain: apps.example.net, dns: {records: [{name: '*.apps.example.net', addresses: [198.51.100.1]}]}":                    "198.51.100.1",
		"appsDomain: apps.example.net, ingress: [{name: default, domains: [apps.example.net]}]":                                      "192.0.2.3",
		"dns: {records: [{name: '*.apps.example.net', addresses: [198.51.100.1]}]}, openshiftVersion: '4.18', vrrp: {mode: unicast}": "198.51.100.1",
	} {
		good(t)
		lay(t, map[string]string{"vipgen.yaml": fleetHead + "spec: {" + spec + "}\n", input.ClusterIngressName: clusterIngress})
		out := must(t, "preview", "--node", "worker-0", "--role", "worker", "--interface", "ens3", "--address", "192.0.2.20/24", "--file", "Corefile")
		_, zone, _ := strings.Cut(out, "template IN A apps.example.net {")
		if _, answer, _ := strings.Cut(zone, "IN A "); !strings.HasPrefix(answer, want+`"`) {
			t.Errorf("%s: no answer %s in\n%s", spec, want, out)
		}
	}
}
