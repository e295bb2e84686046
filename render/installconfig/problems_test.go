package installconfig_test

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/installconfig"
)

func lines(l problem.List) string {
	if len(l) == 0 {
		return ""
	}
	return l.Error() + "\n"
}

const (
	tail      = "platform: {none: {}}\n"
	platforms = "one of baremetal, vsphere, openstack, ovirt, nutanix, none, external"
	label     = "lower-case letters, digits and hyphens, at most 63, with a letter or digit at both ends"
	name      = "labels separated by periods, each of " + label
)

func bareMetal(s string) string { return head + "platform:\n  baremetal:\n    " + s + "\n" }

func TestReadProblems(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4)
	for _, test := range []struct{ name, in, want string }{
		{"a list", "- a\n", `ic.yaml:1:1: error: found a list, expected a mapping [wrong-type]
`},

		// Header.
		{"v1beta2", "apiVersion: v1beta2\n" + strings.SplitAfterN(head, "\n", 2)[1] + tail,
			"ic.yaml:1:13: error: apiVersion: found \"v1beta2\", expected \"v1\" [wrong-kind]\n"},
		{"kind", "kind: AgentConfig\n" + head + tail,
			"ic.yaml:1:7: error: kind: found \"AgentConfig\", expected an install-config, which has no kind [wrong-kind]\n"},

		// Names.
		{"upper case", strings.Replace(head, "demo", "Demo", 1) + tail,
			"ic.yaml:2:18: error: metadata.name: found \"Demo\", expected " + name + " [bad-name]\n"},
		{"long domain", strings.Replace(head, "example", long[:243], 1) + tail,
			"ic.yaml:2:18: error: metadata.name: found a name that makes api-int.<name>.<baseDomain> 260 characters long, expected at most 253 [bad-name]\n"},
		{"name of a wrong type", "apiVersion: v1\nmetadata: {name: [a]}\nbaseDomain: no\n" + tail,
			`ic.yaml:2:12: error: metadata.name: found a list, expected text [wrong-type]
ic.yaml:3:13: error: baseDomain: found the bool "no", expected text (quote it if it is text: "no") [wrong-type]
`},

		{"long name", strings.Replace(head, "demo", strings.Repeat("a", 55), 1) + tail,
			"ic.yaml:2:18: error: metadata.name: found 55 characters, expected at most 54, as OpenShift's installer wants [bad-name]\n"},

		// Fields that no installer has.
		{"misspelt, of others", head + "proxi: {}\n" + tail,
			"ic.yaml:4:1: warning: proxi: found \"proxi\", expected a field that OpenShift's installer has (did you mean \"proxy\"?) [unknown-field]\n"},
		{"in the wrong place", head + "machineNetwork: [{cidr: 10.0.0.0/24}]\napiVIPs: [10.0.0.5]\n" + bareMetal("hosts: []")[len(head):],
			`ic.yaml:4:1: error: machineNetwork: found "machineNetwork", expected a field that OpenShift's installer has (it belongs under networking) [unknown-field]
ic.yaml:5:1: error: apiVIPs: found "apiVIPs", expected a field that OpenShift's installer has (it belongs under platform.baremetal) [unknown-field]
`},
		{"of no use to anybody", head + "hunter2: x\n" + tail,
			"ic.yaml:4:1: warning: found an unknown field, expected a field that OpenShift's installer has [unknown-field]\n"},
		{"left alone", head + "proxy: {x: y}\ncapabilities: {x: y}\nplatform: {vsphere: {vcenters: [{x: y}]}}\n", ""},
		// Networks.
		{"host bits", head + "networking: {machineNetwork: [{cidr: 10.0.0.5/24}]}\n" + tail,
			"ic.yaml:4:38: error: networking.machineNetwork[0].cidr: found \"10.0.0.5/24\", expected the network itself, \"10.0.0.0/24\" [bad-network]\n"},
		{"no cidr", head + "networking: {machineNetwork: [{}]}\n" + tail,
			"ic.yaml:4:31: error: networking.machineNetwork[0].cidr: found nothing, expected a network, such as 192.0.2.0/24 [missing-field]\n"},
		{"address", head + "networking: {serviceNetwork: [172.30.0.1]}\n" + tail,
			"ic.yaml:4:31: error: networking.serviceNetwork[0]: found \"172.30.0.1\", expected a network, such as 192.0.2.0/24 [bad-network]\n"},
		{"everything", head + "networking: {machineNetwork: [{cidr: 0.0.0.0/0}]}\n" + tail,
			"ic.yaml:4:38: error: networking.machineNetwork[0].cidr: found \"0.0.0.0/0\", the unspecified address, expected a network of unicast addresses [bad-network]\n"},
		{"both machine networks", head + "networking: {machineCIDR: 10.1.0.0/16, machineNetwork: [{cidr: 10.2.0.0/16}]}\n" + tail,
			`ic.yaml:4:27: error: networking.machineCIDR: found "10.1.0.0/16", expected "10.2.0.0/16", as in machineNetwork[0] (remove machineCIDR) [conflicting-fields]
ic.yaml:4:27: warning: networking.machineCIDR: found an old spelling, expected machineNetwork [deprecated]
`},
		{"network type", head + "networking: {networkType: 'a b'}\n" + tail,
			"ic.yaml:4:27: error: networking.networkType: found \"a b\", expected a word of letters and digits [bad-value]\n"},

		{"large service networks", head + "networking: {serviceNetwork: [172.32.0.0/11, 'fd02::/64']}\n" + tail,
			`ic.yaml:4:31: error: networking.serviceNetwork[0]: found "172.32.0.0/11", expected a prefix of 12 bits or more [bad-network]
ic.yaml:4:46: error: networking.serviceNetwork[1]: found "fd02::/64", expected a prefix of 108 bits or more [bad-network]
`},
		{"host prefix", head + "networking: {clusterNetwork: [{cidr: 10.128.0.0/14}, {cidr: 10.132.0.0/14, hostPrefix: -1}, {cidr: 'fd01::/48', hostPrefix: 60}, {cidr: 'fd03::/72', hostSubnetLength: 64}]}\n" + tail,
			`ic.yaml:4:31: error: networking.clusterNetwork[0].hostPrefix: found nothing, expected the prefix of each node's part of 10.128.0.0/14, from 14 to 32 bits [missing-field]
ic.yaml:4:88: error: networking.clusterNetwork[1].hostPrefix: found -1, expected the prefix of each node's part of 10.132.0.0/14, from 14 to 32 bits [bad-value]
ic.yaml:4:125: error: networking.clusterNetwork[2].hostPrefix: found 60, expected 64, the prefix of each node's part of a network, in one of 64 bits or fewer [bad-value]
ic.yaml:4:130: error: networking.clusterNetwork[3].hostPrefix: found 64, expected 64, the prefix of each node's part of a network, in one of 64 bits or fewer [bad-value]
`},
		{"host prefix that another network type does not need", head + "networking: {networkType: Calico, clusterNetwork: [{cidr: 10.128.0.0/14}]}\n" + tail, ""},
		{"OVN-Kubernetes' network", head + "networking: {networkType: Calico, ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.66.0.0/24}}}\n" + tail,
			`ic.yaml:4:35: error: networking.ovnKubernetesConfig: found networkType Calico, expected networkType: OVNKubernetes beside it [conflicting-fields]
ic.yaml:4:84: error: networking.ovnKubernetesConfig.ipv4.internalJoinSubnet: found "100.66.0.0/24", expected a network with an address for each of the 512 nodes that clusterNetwork has room for [bad-network]
`},
		{"OVN-Kubernetes' network beside IPv6", head + "networking: {machineNetwork: [{cidr: 'fd00::/64'}], ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.66.0.0/24}}}\n" + tail,
			"ic.yaml:4:102: error: networking.ovnKubernetesConfig.ipv4.internalJoinSubnet: found \"100.66.0.0/24\", expected a network with an address for each of the 512 nodes that clusterNetwork has room for [bad-network]\n"},

		// Pools.
		{"control plane's name", head + "controlPlane: {name: boss}\n" + tail,
			"ic.yaml:4:22: warning: controlPlane.name: found \"boss\", expected \"master\" (OpenShift's installer calls it that whatever is said here) [bad-name]\n"},
		{"pool's name", head + "compute: [{name: a.b}, {}, {name: master}, {name: worker}, {name: worker}, {name: edge}]\n" + tail,
			`ic.yaml:4:18: error: compute[0].name: found "a.b", expected ` + label + ` [bad-name]
ic.yaml:4:24: error: compute[1].name: found nothing, expected the name of the pool, such as "worker" [missing-field]
ic.yaml:4:35: error: compute[2].name: found "master", expected the name of a compute pool (master and arbiter have fields of their own, controlPlane and arbiter) [bad-name]
ic.yaml:4:67: error: compute[4].name: found "worker" for the second time, expected a name of its own (first in compute[3].name) [bad-name]
ic.yaml:4:83: error: compute[5].name: found "edge", expected "worker" (OpenShift's installer takes no other pool: put it under spec.pools of vipgen.yaml) [bad-name]
`},
		{"replicas", head + "controlPlane: {replicas: -1}\ncompute: [{name: worker, replicas: many}]\n" + tail,
			`ic.yaml:4:26: error: controlPlane.replicas: found "-1", expected a number from 0 [bad-value]
ic.yaml:5:36: error: compute[0].replicas: found the text "many", expected a whole number [wrong-type]
`},
		{"fencing of compute nodes", head + "compute: [{name: worker, fencing: {}}]\n" + tail,
			"ic.yaml:4:26: error: compute[0].fencing: found fencing of compute nodes, expected none: it is for the control plane [topology]\n"},
		{"feature set", head + "featureSet: \"a\\nb\"\n" + tail,
			"ic.yaml:4:13: error: featureSet: found \"a\\nb\", expected one of CustomNoUpgrade, DevPreviewNoUpgrade, LatencySensitive, OKD, TechPreviewNoUpgrade [bad-value]\n"},

		// Platform.
		{"null platform", head + "platform:\n  none:\n",
			"ic.yaml:4:1: error: platform: found nothing, expected " + platforms + " (a platform without settings is written with braces, as in none: {}) [missing-field]\n"},
		{"platform as text", head + "platform: none\n",
			"ic.yaml:4:11: error: platform: found the text \"none\", expected a mapping (a platform without settings is written with braces: platform: {none: {}}) [wrong-type]\n"},
		{"two platforms", head + "platform: {none: {}, vsphere: {}}\n",
			"ic.yaml:4:1: error: platform: found vsphere and none, expected one platform [conflicting-fields]\n"},
		{"exact name beside it", bareMetal("apivips: [x]\n    apiVIPs: [10.0.0.5]"),
			"ic.yaml:6:5: warning: platform.baremetal.apivips: found \"apivips\" (did you mean \"apiVIPs\"?) [unknown-field]\n"},
		{"other case, then a problem", "APIVersion: v1\nmetadata: {name: a}\nBaseDomain: \"-\"\nplatform: {none: {}}\n",
			"ic.yaml:1:1: warning: APIVersion: found \"APIVersion\", expected \"apiVersion\" (it was read as that, as OpenShift's installer does) [unknown-field]\n" +
				"ic.yaml:3:1: warning: BaseDomain: found \"BaseDomain\", expected \"baseDomain\" (it was read as that, as OpenShift's installer does) [unknown-field]\n" +
				"ic.yaml:3:13: error: baseDomain: found \"-\", expected labels separated by periods, each of lower-case letters, digits and hyphens, at most 63, with a letter or digit at both ends [bad-name]\n"},
		{"load balancer without a type", bareMetal("loadBalancer: {}"),
			"ic.yaml:6:5: error: platform.baremetal.loadBalancer.type: found nothing, expected OpenShiftManagedDefault or UserManaged, or no loadBalancer at all [missing-field]\n"},
		{"load balancer", bareMetal("loadBalancer: {type: Mine}"),
			"ic.yaml:6:26: error: platform.baremetal.loadBalancer.type: found \"Mine\", expected OpenShiftManagedDefault or UserManaged [bad-value]\n"},
		{"DNS records", bareMetal("dnsRecordsType: Elsewhere"),
			"ic.yaml:6:21: error: platform.baremetal.dnsRecordsType: found \"Elsewhere\", expected Internal or External [bad-value]\n"},
		{"DNS records of others beside OpenShift's load balancer", bareMetal("dnsRecordsType: External"),
			"ic.yaml:6:21: error: platform.baremetal.dnsRecordsType: found External with OpenShift's load balancer, expected loadBalancer.type: UserManaged beside it, as OpenShift wants [conflicting-fields]\n"},
		{"VIPs by BGP", bareMetal("bgpVIPConfig: {peers: [{peerASN: 64513, password: hush}]}"),
			"ic.yaml:6:5: error: platform.baremetal.bgpVIPConfig.localASN: found nothing, expected the AS number of the nodes [missing-field]\n" +
				"ic.yaml:6:28: error: platform.baremetal.bgpVIPConfig.peers[0].peerAddress: found nothing, expected the address of the router [missing-field]\n"},
		{"a router's fields that the preview lacks", bareMetal("bgpVIPConfig: {localASN: 1, peers: [{peerAddress: 10.0.0.1, peerASN: 1, hunter2: 1, failuredetektion: BFD}]}\n    hosts: [{name: a, bgpPeers: [{peerAddress: 10.0.0.1, peerASN: 1, mtu: 1}]}]"), `ic.yaml:6:77: error: platform.baremetal.bgpVIPConfig.peers[0]: found an unknown field, expected a field that OpenShift's installer has [unknown-field]
ic.yaml:6:89: error: platform.baremetal.bgpVIPConfig.peers[0].failuredetektion: found "failuredetektion", expected a field that OpenShift's installer has (did you mean "failureDetection"?) [unknown-field]
ic.yaml:7:70: error: platform.baremetal.hosts[0].bgpPeers[0]: found an unknown field, expected a field that OpenShift's installer has [unknown-field]
`},
		{"a router's values", bareMetal("bgpVIPConfig: {localASN: 1, peers: [{peerAddress: 10.0.0.1, peerASN: 1, port: 1790, failureDetection: bfd, peerReachability: Far, holdTimeSeconds: 70000}]}"), `ic.yaml:6:83: error: platform.baremetal.bgpVIPConfig.peers[0].port: found 1790, expected 179 (vipgen has sessions at no other port) [bad-value]
ic.yaml:6:107: error: platform.baremetal.bgpVIPConfig.peers[0].failureDetection: found "bfd", expected BFD or HoldTimer [bad-value]
ic.yaml:6:130: error: platform.baremetal.bgpVIPConfig.peers[0].peerReachability: found "Far", expected MultiHop or DirectlyConnected [bad-value]
ic.yaml:6:152: error: platform.baremetal.bgpVIPConfig.peers[0].holdTimeSeconds: found "70000", expected a whole number from 0 to 65535 [bad-value]
`},

		// VIPs.
		{"unusable VIPs", bareMetal("apiVIPs: [0.0.0.0, 'fe80::1%eth0']"), // TestUsableAddress has them all
			`ic.yaml:6:15: error: platform.baremetal.apiVIPs[0]: found "0.0.0.0", the unspecified address, expected a unicast IP address [bad-address]
ic.yaml:6:24: error: platform.baremetal.apiVIPs[1]: found "fe80::1%eth0", an address with a zone, expected a unicast IP address [bad-address]
`},
		{"two of a family", bareMetal("ingressVIPs: [10.0.0.5, 10.0.0.6, 'fd00::5']"),
			"ic.yaml:6:29: error: platform.baremetal.ingressVIPs[1]: found \"10.0.0.6\", a second IPv4 address, expected at most one IPv4 and one IPv6 address [bad-value]\n"},
		{"VIPs that disagree", bareMetal("apiVIPs: [10.0.0.5]\n    apiVIP: 10.0.0.6"),
			`ic.yaml:7:13: error: platform.baremetal.apiVIP: found "10.0.0.6", expected an address of apiVIPs (remove apiVIP) [conflicting-fields]
ic.yaml:7:13: warning: platform.baremetal.apiVIP: found an old spelling, expected apiVIPs [deprecated]
`},
		{"DNS VIP", bareMetal("dnsVIP: '::1'"),
			`ic.yaml:6:13: error: platform.baremetal.dnsVIP: found "::1", a loopback address, expected a unicast IP address [bad-address]
ic.yaml:6:13: warning: platform.baremetal.dnsVIP: found a DNS VIP, expected none, as every node answers for itself since OpenShift 4.5 [deprecated]
`},

		// Hosts.
		{"hosts", bareMetal("hosts: [{name: M0}, {}, null, {name: a}, {name: a}, {name: b, role: boss}]"),
			`ic.yaml:6:20: error: platform.baremetal.hosts[0].name: found "M0", expected ` + name + ` [bad-name]
ic.yaml:6:25: error: platform.baremetal.hosts[1].name: found nothing, expected the name of the host [missing-field]
ic.yaml:6:29: error: platform.baremetal.hosts[2]: found nothing, expected a mapping [wrong-type]
ic.yaml:6:53: error: platform.baremetal.hosts[4].name: found "a" for the second time, expected a name of its own (first in platform.baremetal.hosts[3].name) [bad-name]
ic.yaml:6:73: error: platform.baremetal.hosts[5].role: found "boss", expected master, worker or arbiter [bad-value]
`},
		{"host's addresses", bareMetal("hosts: [{name: a, networkConfig: {interfaces: [{ipv4: {address: [{}, {ip: 'fd00::1'}, {ip: 10.0.0.1}, {ip: 10.0.0.1, prefix-length: 33}, {ip: 127.0.0.1, prefix-length: 8}]}}]}}]"),
			`ic.yaml:6:70: error: platform.baremetal.hosts[0].networkConfig.interfaces[0].ipv4.address[0].ip: found nothing, expected an IPv4 address [missing-field]
ic.yaml:6:79: error: platform.baremetal.hosts[0].networkConfig.interfaces[0].ipv4.address[1].ip: found "fd00::1", expected an IPv4 address [bad-address]
ic.yaml:6:91: error: platform.baremetal.hosts[0].networkConfig.interfaces[0].ipv4.address[2].prefix-length: found nothing, expected the length of the network's prefix [missing-field]
ic.yaml:6:137: error: platform.baremetal.hosts[0].networkConfig.interfaces[0].ipv4.address[3].prefix-length: found "33", expected a number from 0 to 32 [bad-value]
ic.yaml:6:147: error: platform.baremetal.hosts[0].networkConfig.interfaces[0].ipv4.address[4].ip: found "127.0.0.1", a loopback address, expected a unicast IP address [bad-address]
`},
		{"vSphere hosts", head + "platform: {vsphere: {hosts: [{role: master, networkDevice: {ipAddrs: [10.0.0.1, 'fe80::1/64']}}]}}\n",
			`ic.yaml:4:37: error: platform.vsphere.hosts[0].role: found "master", expected bootstrap, control-plane or compute [bad-value]
ic.yaml:4:71: error: platform.vsphere.hosts[0].networkDevice.ipAddrs[0]: found "10.0.0.1", expected a network, such as 192.0.2.0/24 [bad-network]
ic.yaml:4:81: error: platform.vsphere.hosts[0].networkDevice.ipAddrs[1]: found "fe80::1", a link-local address, expected a unicast IP address [bad-address]
`},

		// Mirrors.
		{"mirrors", head + "imageDigestSources: [{}, {source: 'a b', mirrors: ['x:tag', \"a\\nb\", [c]]}]\n" + tail,
			`ic.yaml:4:22: error: imageDigestSources[0].source: found nothing, expected an image repository, such as registry.example.com:5000/ocp/release [missing-field]
ic.yaml:4:35: error: imageDigestSources[1].source: found "a b", expected an image repository, such as registry.example.com:5000/ocp/release [bad-image]
ic.yaml:4:52: error: imageDigestSources[1].mirrors[0]: found "x:tag", expected an image repository, such as registry.example.com:5000/ocp/release [bad-image]
ic.yaml:4:61: error: imageDigestSources[1].mirrors[1]: found "a\nb", expected an image repository, such as registry.example.com:5000/ocp/release [bad-image]
ic.yaml:4:69: error: imageDigestSources[1].mirrors[2]: found a list, expected text [wrong-type]
`},
		{"both mirrors", head + "imageDigestSources: [{source: a}]\nimageContentSources: [{source: a}]\n" + tail,
			`ic.yaml:5:1: error: imageContentSources: found mirrors here and in imageDigestSources, expected one of the two [conflicting-fields]
ic.yaml:5:1: warning: imageContentSources: found an old spelling, expected imageDigestSources [deprecated]
`},
	} {
		_, problems := installconfig.Read("ic.yaml", []byte(test.in))
		testkit.Equal(testkit.In(t, test.name), test.want, lines(problems))
	}
}

func TestReadAgentConfigProblems(t *testing.T) {
	const head = "apiVersion: v1beta1\nkind: AgentConfig\n"
	for _, test := range []struct{ name, in, want string }{
		{"empty", "", "ac.yaml:1:1: error: found an empty file, expected one YAML document [syntax]\n"},
		{"install-config", "apiVersion: v1\nmetadata: {name: a}\n",
			`ac.yaml:1:13: error: apiVersion: found "v1", expected "v1beta1" or "v1alpha1" [wrong-kind]
`},
		{"other kind", "kind: Agent\n",
			`ac.yaml:1:1: error: apiVersion: found nothing, expected "v1beta1" [missing-field]
ac.yaml:1:7: error: kind: found "Agent", expected "AgentConfig" [wrong-kind]
`},
		{"hosts", head + "hosts:\n- hostname: 'a;b'\n- {hostname: c, role: control-plane}\n- hostname: c\n",
			`ac.yaml:4:13: error: hosts[0].hostname: found "a;b", expected ` + name + ` [bad-name]
ac.yaml:5:23: error: hosts[1].role: found "control-plane", expected master, worker or arbiter [bad-value]
ac.yaml:6:13: error: hosts[2].hostname: found "c" for the second time, expected a name of its own (first in hosts[1].hostname) [bad-name]
`},
		{"hosts as mapping", head + "hosts: {a: b}\n",
			"ac.yaml:3:1: error: hosts: found a mapping, expected a list [wrong-type]\n"},
	} {
		_, problems := installconfig.ReadAgentConfig("ac.yaml", []byte(test.in))
		testkit.Equal(testkit.In(t, test.name), test.want, lines(problems))
	}
}
