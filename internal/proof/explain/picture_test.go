package explain_test

import (
	"bytes"
	"testing"

	"github.com/vipgen/vipgen/internal/proof/explain"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
