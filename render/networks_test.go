package render

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Networks of hosts stand where the first of their family did: the order decides the primary family.
func TestReplaceFamily(t *testing.T) {
	for _, tt := range []struct{ list, found, want string }{
		{"192.0.2.0/24 2001:db8::/64", "198.51.100.0/24", "198.51.100.0/24 2001:db8::/64"},
		{"2001:db8::/64 192.0.2.0/24 203.0.113.0/24", "198.51.100.0/24", "2001:db8::/64 198.51.100.0/24"},
		{"192.0.2.0/24 203.0.113.0/24 2001:db8::/64", "2001:db8:1::/64 2001:db8:2::/64", "192.0.2.0/24 203.0.113.0/24 2001:db8:1::/64 2001:db8:2::/64"},
		{"192.0.2.0/24", "2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
	} {
		networks := func(text string) []netip.Prefix { return lists.Map(strings.Fields(text), netip.MustParsePrefix) }
		testkit.Equal(t, tt.want, lists.Join(replaceFamily(networks(tt.list), networks(tt.found)), " "))
	}
}

// Objects without machine networks, whose hosts have DHCP: the rules of families apply to the
// other networks.
func TestFamiliesOfObjects(t *testing.T) {
	const (
		four, six = "[192.0.2.5], ingressVIPs: [192.0.2.7]", "['2001:db8::5'], ingressVIPs: ['2001:db8::7']"
		both      = "[172.30.0.0/16, 'fd02::/112'], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: 'fd01::/48', hostPrefix: 64}]"
		turned    = "['fd02::/112', 172.30.0.0/16], clusterNetwork: [{cidr: 'fd01::/48', hostPrefix: 64}, {cidr: 10.128.0.0/14, hostPrefix: 23}]"
	)
	for _, tt := range []struct {
		vips, services, version string
		refused                 bool
	}{
		{four, both, "", false},
		{four, "[172.30.0.0/16, 'fd02::/112'], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}]", "", true},
		{six, both, "", true},
		{six, both, "4.19", false},
		{six, turned, "4.12", true},
		{six, turned, "4.13", false},
	} {
		text := "apiVersion: extensions.hive.openshift.io/v1beta1\nkind: AgentClusterInstall\nmetadata: {name: demo}\nspec:\n  clusterDeploymentRef: {name: demo}\n" +
			"  platformType: BareMetal\n  provisionRequirements: {controlPlaneAgents: 3}\n  apiVIPs: " + strings.Replace(tt.vips, ", ", "\n  ", 1) +
			"\n  networking: {serviceNetwork: " + tt.services + "}\n---\n" +
			"apiVersion: hive.openshift.io/v1\nkind: ClusterDeployment\nmetadata: {name: demo}\nspec: {clusterName: demo, baseDomain: example.com}\n"
		_, list, _ := Load(Sources{InstallConfig: File{Name: "cluster.yaml", Data: []byte(text)}}, Options{OpenShiftVersion: tt.version})
		refused := strings.Contains(list.Error(), "[family-order]")
		testkit.Equal(testkit.In(t, tt.vips, tt.services, tt.version, list.Error()), tt.refused, refused && list.Err() != nil)
	}
}
