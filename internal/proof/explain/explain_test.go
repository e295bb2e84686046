package explain_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/proof/explain"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

func clusterOf(t testing.TB, platform, vip string, masters, workers int) *render.Cluster {
	t.Helper()
	install := fmt.Sprintf(`apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
networking:
  machineNetwork: [{cidr: 192.0.0.0/16}, {cidr: "2001:db8::/64"}]
controlPlane: {name: master, replicas: %d}
compute: [{name: worker, replicas: %d}]
platform:
  %s
`, masters, workers, platform)
	if vip != "" {
		vip = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: " + vip
	}
	return clusters.Load(t, install, vip)
}

const (
	oneFamily = `baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3], loadBalancer: {type: UserManaged}}`
	twoOfThem = `baremetal: {apiVIPs: [192.0.2.2, "2001:db8::2"], ingressVIPs: [192.0.2.3, "2001:db8::3"], loadBalancer: {type: UserManaged}}`
	beside    = `baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]}`
)

func stageOf(t *testing.T, c *render.Cluster, group, stage string) explain.Stage {
	t.Helper()
	r, err := explain.Cluster(c)
	testkit.Must(t, err)
	for _, g := range r.Groups {
		for _, s := range g.Stages {
			if g.Name == group && s.Stage == stage {
				return s
			}
		}
	}
	t.Fatalf("nothing of group %s, stage %s", group, stage)
	return explain.Stage{}
}

// The figures are derived by hand: skew is (256 - priority) / 256 of an interval with VRRPv3,
// of a second with VRRPv2; the successor has 68, or 80 points.
func TestTiming(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		platform, vip, group, stage string
		workers                     int
		want                        explain.Timing
	}{
		{"fast", oneFamily, "", "api", "running", 3, explain.Timing{AdvertMS: 40, Peers: 2, Sent: 50, Received: 25, DeadMS: 150, GoodbyeMS: 30, BetterMS: 150, StallMS: 109}},
		{"the bootstrap hears it too", oneFamily, "", "api", "installation", 3, explain.Timing{AdvertMS: 40, Peers: 3, Sent: 75, Received: 25, DeadMS: 150, GoodbyeMS: 30, BetterMS: 150, StallMS: 109}},
		{"two families", twoOfThem, "", "api", "running", 3, explain.Timing{AdvertMS: 40, Peers: 2, Sent: 100, Received: 50, DeadMS: 150, GoodbyeMS: 30, BetterMS: 150, StallMS: 109}},
		{"virtual", oneFamily, "{vrrp: {profile: virtual}}", "api", "running", 3, explain.Timing{AdvertMS: 200, Peers: 2, Sent: 10, Received: 5, DeadMS: 747, GoodbyeMS: 147, BetterMS: 747, StallMS: 546}},
		{"virtual, ingress", oneFamily, "{vrrp: {profile: virtual}}", "ingress", "running", 3, explain.Timing{AdvertMS: 200, Peers: 2, Sent: 10, Received: 5, DeadMS: 738, GoodbyeMS: 138, BetterMS: 738, StallMS: 537}},
		{"classic", oneFamily, "{vrrp: {profile: classic}}", "api", "running", 3, explain.Timing{AdvertMS: 1000, Peers: 2, Sent: 2, Received: 1, DeadMS: 3735, GoodbyeMS: 735, BetterMS: 3735, StallMS: 2734}},
		{"VRRPv2 every two seconds", oneFamily, "{vrrp: {profile: custom, version: 2, advertInterval: 2s}}", "api", "running", 3, explain.Timing{AdvertMS: 2000, Peers: 2, Sent: 1, Received: 0.5, DeadMS: 6735, GoodbyeMS: 735, BetterMS: 6735, StallMS: 4734}},
		{"beside OpenShift's own", beside, "", "ingress", "installation", 3, explain.Timing{AdvertMS: 1000, Peers: 2, Sent: 2, Received: 1, DeadMS: 3688, GoodbyeMS: 688, BetterMS: 3688, StallMS: 2687}},
		{"multicast", oneFamily, "{vrrp: {mode: multicast}}", "ingress", "running", 9, explain.Timing{AdvertMS: 40, Sent: 25, Received: 25, DeadMS: 148, GoodbyeMS: 28, BetterMS: 148, StallMS: 107}},
		{"paced (hard case 26)", oneFamily, "", "ingress", "running", 401, explain.Timing{AdvertMS: 200, Peers: 400, Sent: 2000, Received: 5, DeadMS: 738, GoodbyeMS: 138, BetterMS: 738, StallMS: 537}},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, stageOf(t, clusterOf(t, tt.platform, tt.vip, 3, tt.workers), tt.group, tt.stage).Timing)
	}
}

// For more API VIPs the explanation has the object that makes their own names work;
// The printed text is in golden/verified.
func TestClientsOfMoreAPIVIPs(t *testing.T) {
	c := clusterOf(t, twoOfThem, `{additionalAPIVIPs: [{name: mgmt, vips: ["2001:db8::17"]}, {name: old, vips: [192.0.2.18], names: [a.example.net, b.example.net]}]}`, 3, 3)
	r, err := explain.Cluster(c)
	testkit.Must(t, err)
	var object configv1.APIServer
	testkit.Must(t, yaml.UnmarshalStrict([]byte(r.NamedCertificates), &object))
	want := []configv1.APIServerNamedServingCert{
		{Names: []string{"api-mgmt.demo.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "api-mgmt"}},
		{Names: []string{"a.example.net", "b.example.net"}, ServingCertificate: configv1.SecretNameReference{Name: "api-old"}},
	}
	if object.Kind != "APIServer" || object.APIVersion != configv1.GroupVersion.String() || !reflect.DeepEqual(object.Spec.ServingCerts.NamedCertificates, want) {
		t.Errorf("%s", r.NamedCertificates)
	}
	for _, f := range stageOf(t, c, "api-mgmt", verify.StageRunning).Failures {
		testkit.Lacks(t, f.What, "achine config")
	}
}

// A picture has what differs from that of docs/pictures/baremetal.svg, and is the same again.
func TestPicture(t *testing.T) {
	for _, tt := range []struct {
		platform, vip string
		want, not     []string
	}{
		{twoOfThem, "{vrrp: {profile: classic}, ports: {haproxy: 9999}}", []string{">2001:db8::2<", ">port 9999<", ">VRRPv2, unicast, every 1000 ms<"}, nil},
		{oneFamily, "{ingress: [{name: edge, domains: [edge.example.com], vips: [192.0.2.9]}]}", []string{">ingress-edge<", ">192.0.2.9<"}, nil},
		{oneFamily, "{loadBalancer: {type: External}}", []string{">coredns<", ">CoreDNS of the node<"}, []string{">keepalived<", ">API VIP<", ">haproxy<"}},
	} {
		c := clusterOf(t, tt.platform, tt.vip, 3, 2)
		r, err := explain.Cluster(c)
		testkit.Must(t, err)
		var first, second bytes.Buffer
		testkit.Must(t, explain.WriteSVG(&first, c, r))
		testkit.Must(t, explain.WriteSVG(&second, c, r))
		testkit.Equal(testkit.In(t, tt.vip), first.String(), second.String())
		testkit.Contains(testkit.In(t, tt.vip), first.String(), tt.want...)
		testkit.Lacks(testkit.In(t, tt.vip), first.String(), tt.not...)
	}
}
