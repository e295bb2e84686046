package installconfig_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// head is a config up to its networks and platform.
const head = `apiVersion: v1
metadata: {name: demo}
baseDomain: example.com
`

type (
	config  = installconfig.InstallConfig
	address = installconfig.Address
	network = installconfig.Network
	prefix  = installconfig.Prefix
	pool    = installconfig.Pool
	host    = installconfig.Host
)

func addr(s, field string) address {
	return address{Addr: netip.MustParseAddr(s), Field: field}
}

func cidr(s, field string) network {
	return network{Prefix: netip.MustParsePrefix(s), Field: field}
}

func pods(s, field string, hostPrefix int) network {
	n := cidr(s, field)
	n.HostPrefix = hostPrefix
	return n
}

func hostAddr(s, field string) prefix {
	return prefix{Prefix: netip.MustParsePrefix(s), Field: field}
}

var byDefault = map[string]network{
	"machine": {Prefix: netip.MustParsePrefix("10.0.0.0/16"), Field: "networking.machineNetwork", Default: true},
	"cluster": {Prefix: netip.MustParsePrefix("10.128.0.0/14"), Field: "networking.clusterNetwork", Default: true, HostPrefix: 23},
	"service": {Prefix: netip.MustParsePrefix("172.30.0.0/16"), Field: "networking.serviceNetwork", Default: true},
}

// basic returns the result of head with a change.
func basic(change func(*config)) config {
	c := config{
		Name: "demo", BaseDomain: "example.com", NetworkType: "OVNKubernetes",
		MachineNetworks: []network{byDefault["machine"]},
		ClusterNetworks: []network{byDefault["cluster"]},
		ServiceNetworks: []network{byDefault["service"]},
		ControlPlane:    pool{Name: "master", Field: "controlPlane", Replicas: 3},
		Compute:         []pool{{Name: "worker", Field: "compute", Replicas: 3}},
		Platform:        "none",
	}
	change(&c)
	return c
}

var compare = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmpopts.IgnoreTypes(&source.Document{}),
	cmpopts.IgnoreFields(config{}, "Newer"), // see TestNewer
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     config
		warnings string
	}{
		{name: "least", in: head + "platform: {none: {}}\n",
			want: basic(func(*config) {})},
		{name: "oVirt's old spelling",
			in: head + "platform: {ovirt: {api_vip: 10.0.0.5, ingress_vip: 10.0.0.7, dns_vip: 10.0.0.6}}\n",
			want: basic(func(c *config) {
				c.Platform = "ovirt"
				c.APIVIPs = []address{addr("10.0.0.5", "platform.ovirt.api_vip")}
				c.IngressVIPs = []address{addr("10.0.0.7", "platform.ovirt.ingress_vip")}
				dns := addr("10.0.0.6", "platform.ovirt.dns_vip")
				c.DNSVIP = &dns
			}),
			warnings: `ic.yaml:4:29: warning: platform.ovirt.api_vip: found an old spelling, expected api_vips [deprecated]
ic.yaml:4:52: warning: platform.ovirt.ingress_vip: found an old spelling, expected ingress_vips [deprecated]
ic.yaml:4:71: warning: platform.ovirt.dns_vip: found a DNS VIP, expected none, as every node answers for itself since OpenShift 4.5 [deprecated]
`},
		{name: "both spellings that agree",
			in: head + "platform: {nutanix: {apiVIP: 10.0.0.5, apiVIPs: [10.0.0.5], ingressVIPs: [10.0.0.7]}}\n",
			want: basic(func(c *config) {
				c.Platform = "nutanix"
				c.APIVIPs = []address{addr("10.0.0.5", "platform.nutanix.apiVIPs[0]")}
				c.IngressVIPs = []address{addr("10.0.0.7", "platform.nutanix.ingressVIPs[0]")}
			}),
			warnings: "ic.yaml:4:30: warning: platform.nutanix.apiVIP: found an old spelling, expected apiVIPs [deprecated]\n"},
		{name: "OpenStack chooses VIPs",
			in: head + "networking: {machineNetwork: [{cidr: 10.1.0.0/24}]}\nplatform: {openstack: {cloud: x}}\n",
			want: basic(func(c *config) {
				c.MachineNetworks = []network{cidr("10.1.0.0/24", "networking.machineNetwork[0].cidr")}
				c.Platform = "openstack"
				c.APIVIPs = []address{{netip.MustParseAddr("10.1.0.5"), "platform.openstack.apiVIPs", true}}
				c.IngressVIPs = []address{{netip.MustParseAddr("10.1.0.7"), "platform.openstack.ingressVIPs", true}}
			})},
		{name: "OpenStack with a user's load balancer chooses none",
			in: head + "platform: {openstack: {loadBalancer: {type: UserManaged}}}\n",
			want: basic(func(c *config) {
				c.Platform, c.LoadBalancer = "openstack", "UserManaged"
			})},
		{name: "4.1",
			in: `apiVersion: v1beta4
metadata: {name: dev.prod}
baseDomain: example.com.
networking:
  machineCIDR: 10.2.0.0/16
  serviceCIDR: 172.31.0.0/16
  clusterNetworks: [{cidr: 10.132.0.0/14, hostSubnetLength: 9}]
  type: OpenShiftSDN
platform: {none: {}}
`,
			want: basic(func(c *config) {
				c.Name, c.NetworkType = "dev.prod", "OpenShiftSDN"
				c.MachineNetworks = []network{cidr("10.2.0.0/16", "networking.machineCIDR")}
				c.ServiceNetworks = []network{cidr("172.31.0.0/16", "networking.serviceCIDR")}
				c.ClusterNetworks = []network{pods("10.132.0.0/14", "networking.clusterNetworks[0].cidr", 23)}
			}),
			warnings: `ic.yaml:1:13: warning: apiVersion: found "v1beta4", expected "v1" [deprecated]
ic.yaml:5:16: warning: networking.machineCIDR: found an old spelling, expected machineNetwork [deprecated]
ic.yaml:6:16: warning: networking.serviceCIDR: found an old spelling, expected serviceNetwork [deprecated]
ic.yaml:7:3: warning: networking.clusterNetworks: found an old spelling, expected clusterNetwork [deprecated]
ic.yaml:8:9: warning: networking.type: found an old spelling, expected networkType [deprecated]
`},
		{name: "fencing",
			in: head + "controlPlane: {fencing: {credentials: [{password: x}]}}\nplatform: {none: {}}\n",
			want: basic(func(c *config) {
				c.Fencing, c.FencingCredentials = true, 1
			})},
		{name: "OVN-Kubernetes' own network",
			in: head + "networking: {ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.66.0.0/16}}}\nbootstrapInPlace: {installationDisk: x}\nplatform: {none: {}}\n",
			want: basic(func(c *config) {
				join := cidr("100.66.0.0/16", "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet")
				c.JoinNetwork, c.BootstrapInPlace = &join, true
			})},
		{name: "hosts",
			in: head + string(testkit.ReadFile(t, "testdata/hosts.yaml")),
			want: basic(func(c *config) {
				c.Platform = "baremetal"
				at := "platform.baremetal.hosts[0].networkConfig.interfaces[4]."
				c.Hosts = []host{
					{Name: "master-0", Role: "master", Field: "platform.baremetal.hosts[0]", Addresses: []prefix{
						hostAddr("10.0.0.21/24", at+"ipv4.address[0].ip"), hostAddr("fd00::21/64", at+"ipv6.address[1].ip")}},
					{Name: "worker-0.example.com", Field: "platform.baremetal.hosts[1]"},
				}
			})},
	} {
		got, problems := installconfig.Read("ic.yaml", []byte(test.in))
		testkit.Equal(testkit.In(t, test.name), test.warnings, lines(problems))
		testkit.Equal(testkit.In(t, test.name), test.want, *got, compare)
	}
}

func TestNewer(t *testing.T) {
	c, _ := installconfig.Read("ic.yaml", []byte(head+`
arbiter: {replicas: 1}
controlPlane: {diskSetup: []}
imageDigestSources: [{source: a, sourcePolicy: NeverContactSource}]
networking: {clusterNetworkMTU: 1400}
platform: {baremetal: {loadBalancer: {type: UserManaged}, hosts: []}}
`))
	testkit.Equal(t, []installconfig.Newer{{"arbiter", "4.19"}, {"controlPlane.diskSetup", "4.20"}, {"imageDigestSources", "4.14"},
		{"networking.clusterNetworkMTU", "4.15"}, {"platform.baremetal.loadBalancer", "4.13"}}, c.Newer)
}

func TestReadAgentConfig(t *testing.T) {
	rendezvous := addr("10.0.0.21", "rendezvousIP")
	want := installconfig.AgentConfig{
		RendezvousIP: &rendezvous,
		Hosts: []host{
			{Name: "master-0", Role: "master", Field: "hosts[0]", Addresses: []prefix{
				hostAddr("10.0.0.21/24", "hosts[0].networkConfig.interfaces[0].ipv4.address[0].ip")}},
			{Role: "arbiter", Field: "hosts[1]"},
		},
	}
	got, problems := installconfig.ReadAgentConfig("ac.yaml", testkit.ReadFile(t, "testdata/agent-config.yaml"))
	testkit.Empty(t, problems)
	testkit.Equal(t, want, *got, compare)
}
