package render_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// The rules of OpenShift's installer, each in both directions and, where releases differ, in
// both: accepted input renders, with the codes of warnings, refused input is refused with these
// codes. A row without a source has that of the row before: a function of
// pkg/types/validation/installconfig.go unless another file is named. The base has
// machineNetwork 192.0.2.0/24; "+" adds 2001:db8::/64, "++" the second family to all networks,
// "-" puts it first. docs/input.md lists vipgen's differences with their reasons.
func TestInstallersRules(t *testing.T) {
	const (
		agent    = "apiVersion: v1beta1\nrendezvousIP: 192.0.2.10\n"
		external = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: External}}\n"
		in       = "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.6]"
		out      = "apiVIPs: [198.51.100.5], ingressVIPs: [198.51.100.6]"
		same     = "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.5]"
		dual     = `apiVIPs: [192.0.2.5, "2001:db8::5"], ingressVIPs: [192.0.2.6, "2001:db8::6"]`
		turned   = `apiVIPs: ["2001:db8::5", 192.0.2.5], ingressVIPs: ["2001:db8::6", 192.0.2.6]`
		users    = ", loadBalancer: {type: UserManaged}"
		ovirt    = "api_vips: [192.0.2.5], ingress_vips: [192.0.2.6]"
		ovirtOut = "api_vips: [198.51.100.5], ingress_vips: [198.51.100.6]"
		vips     = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {apiVIPs: [198.51.100.5], ingressVIPs: [198.51.100.6]}\n"
	)
	const (
		without  = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: None}}\n"
		six      = `apiVIPs: ["2001:db8::5"], ingressVIPs: ["2001:db8::6"]`
		podsBoth = "[{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: 'fd01::/48', hostPrefix: 64}]"
		join     = "  ovnKubernetesConfig: {ipv4: {internalJoinSubnet: "
		single   = "controlPlane: {replicas: 1}\ncompute: [{name: worker, replicas: 0}]"
		arbiter  = "arbiter: {replicas: 1}\ncontrolPlane: {replicas: 2}"
		fencing  = "controlPlane: {replicas: 2, fencing: {credentials: "
		preview  = "\nfeatureSet: TechPreviewNoUpgrade"
		runs     = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {vrrp: {interoperable: false}}\n"
	)
	source := ""
	for _, tt := range []struct {
		source   string // the installer's function
		platform string // "name: settings", "+", "++" or "-" in front for dual-stack
		more     string // lines of the install-config, "old=>new" to replace text
		agent    string
		vip      string
		version  string
		want     string // "severity code" of each problem, in order
	}{
		// VIPs inside of machineNetwork, or outside.
		{source: "validateVIPsForPlatform, ValidateIPinMachineCIDR", platform: "baremetal: " + in},
		{platform: "baremetal: " + out, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "baremetal: " + out + users, want: "warning vip-outside-network"},
		{platform: "baremetal: " + out + users, vip: external},
		{platform: "openstack: " + out, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "vsphere: " + in},
		{platform: "vsphere: " + out, want: "warning vip-outside-network"},
		{platform: "vsphere: " + out, more: "  machineNetwork:\n  - cidr: 192.0.2.0/24\n=>", want: "warning vip-outside-network"},
		{platform: "vsphere: " + in, agent: agent},
		{platform: "vsphere: " + out, agent: agent, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "vsphere: " + out + users, agent: agent, want: "warning vip-outside-network, warning rendezvous-vip"},
		{platform: "vsphere: apiVIPs: [192.0.2.5], ingressVIPs: [198.51.100.6]", want: "warning vip-outside-network"},
		{platform: "nutanix: " + out, agent: agent, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "nutanix: " + out, agent: agent, version: "4.18", want: "error conflicting-fields, warning vip-outside-network"},
		{platform: "ovirt: " + ovirtOut, want: "warning vip-outside-network"},
		{platform: "ovirt: " + ovirtOut, version: "4.12", want: "error vip-outside-network, error vip-outside-network"},
		{platform: "ovirt: " + ovirtOut + users, version: "4.13", want: "warning vip-outside-network"},
		{source: "pkg/types/ovirt/validation: ValidatePlatform", platform: "ovirt: " + ovirt, version: "4.14", want: "warning needs-version"},
		{platform: "none: ", vip: vips, want: "warning vip-outside-network"},

		// The holder of the API VIP on the rendezvous host: vipgen's own rule.
		{source: "none", platform: "baremetal: " + in, agent: agent},
		{platform: "baremetal: " + in + users, agent: agent, want: "warning rendezvous-vip"},
		{platform: "baremetal: " + in + users, agent: agent, vip: external},
		{platform: "baremetal: " + in + users},
		{platform: "none: ", vip: strings.ReplaceAll(vips, "198.51.100", "192.0.2"), agent: agent, want: "warning rendezvous-vip"},
		{platform: "none: ", vip: without, more: single, agent: agent},

		// Required VIPs.
		{source: "validateAPIAndIngressVIPs", platform: "baremetal: ", want: "error no-vips"},
		{platform: "openstack: "}, // the installer's default
		{platform: "vsphere: ", want: "error no-vips"},
		{platform: "nutanix: ", want: "error no-vips"},
		{platform: "vsphere: apiVIPs: [192.0.2.5]", want: "error no-vips"},
		{platform: "none: ", want: "error no-vips"},
		{platform: "none: ", more: single + "\nbootstrapInPlace: {}", want: "warning no-vips"},
		{platform: "none: ", more: single, agent: agent, want: "warning no-vips"},
		{platform: "external: ", more: single, vip: vips, want: "warning vip-outside-network"},
		{platform: "baremetal: ", more: single, want: "error no-vips"},

		// API and ingress at one address.
		{platform: "baremetal: " + same, want: "error vip-taken"},
		{platform: "vsphere: " + same + users, want: "error vip-taken"}, // nodes cannot hold it twice
		{platform: "vsphere: " + same + users, vip: external},
		{platform: "none: apiVIPs: [192.0.2.5]", vip: vips, want: "error unknown-field, warning vip-outside-network"},

		// Families of networks.
		{source: "validateNetworkingIPVersion", platform: "++baremetal: " + dual},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [172.30.0.0/16, 'fd02::/112']", want: "error family-order, error family-order"},
		{platform: "+baremetal: " + in, more: "  serviceNetwork: [172.30.0.0/16, 'fd02::/112']", want: "error family-order"},
		{platform: "+baremetal: " + in, more: "  serviceNetwork: [172.30.0.0/16]"},
		{platform: "+baremetal: " + dual, more: "  clusterNetwork: " + podsBoth},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [172.30.0.0/16, 172.31.0.0/16]", want: "error family-order"},
		{platform: "baremetal: " + six, more: "192.0.2.0/24=>2001:db8::/64\n  serviceNetwork: [172.30.0.0/16, 'fd02::/112']", want: "error family-order, error family-order, error family-order, error family-order"},
		{platform: "++baremetal: " + dual, more: "172.30.0.0/16=>172.31.0.0/16, 172.30.0.0/16", want: "error family-order"},
		{platform: "++none: ", vip: without, more: single},
		{source: "validateNetworkEntryOrder", platform: "++nutanix: " + in, more: "172.30.0.0/16, 'fd02::/112'=>'fd02::/112', 172.30.0.0/16", want: "error family-order, error family-order, error family-order"},
		{platform: "++nutanix: " + in},
		{platform: "-baremetal: " + turned},
		{platform: "-baremetal: " + turned, version: "4.12", want: "error family-order, error family-order, error family-order"},
		{platform: "-baremetal: " + turned, version: "4.13"},
		{platform: "-vsphere: " + turned, version: "4.13", want: "error family-order, error family-order, error family-order"},
		{platform: "-openstack: " + turned, version: "4.14", want: "error family-order, error family-order, error family-order"},
		{platform: "-none: ", vip: without, more: single, version: "4.20", want: "error family-order, error family-order, error family-order"},
		{platform: "-none: ", vip: without, more: single, version: "4.21"},

		{source: "none: a cluster that runs may have what came later", platform: "baremetal: " + in, more: "  serviceNetwork: [172.30.0.0/16, 'fd02::/112']", vip: runs, want: "warning family-order, warning family-order, warning conflicting-fields"},
		{platform: "++baremetal: " + six, vip: runs, want: "warning family-order, warning family-order, warning conflicting-fields"},
		{platform: "-baremetal: " + turned, vip: runs, version: "4.12", want: "warning family-order, warning family-order, warning family-order, warning conflicting-fields"},
		{platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24", vip: runs, want: "warning networks-overlap, warning conflicting-fields"},

		// Families of VIPs, and their order.
		{source: "validateAPIAndIngressVIPs", platform: "++baremetal: " + in},
		{platform: "++baremetal: " + six, want: "error family-order, error family-order"},
		{platform: "++baremetal: " + six + users, want: "error family-order, error family-order"},
		{platform: "++baremetal: " + six, version: "4.19"},
		{platform: "-baremetal: " + in, want: "error family-order, error family-order"},
		{platform: "-baremetal: " + six},
		{platform: "++baremetal: " + in, more: "172.30.0.0/16, 'fd02::/112'=>'fd02::/112', 172.30.0.0/16", want: "error family-order, error family-order"},
		{platform: "++baremetal: " + in, more: "172.30.0.0/16, 'fd02::/112'=>'fd02::/112', 172.30.0.0/16", version: "4.19"},
		{platform: `++baremetal: apiVIPs: [192.0.2.5, "2001:db8::5"], ingressVIPs: [192.0.2.6]`, want: "warning family-order"},
		{platform: `+baremetal: apiVIPs: [192.0.2.5], ingressVIPs: ["2001:db8::6"]`, want: "warning family-order"},
		{platform: "+baremetal: " + dual},
		{platform: "+baremetal: " + turned, want: "error family-order, error family-order"}, // contradicts machineNetwork
		{source: "ensureIPv4IsFirstInDualStackSlice", platform: "+nutanix: " + turned, want: "warning family-order, warning family-order"},
		{platform: "+ovirt: " + strings.NewReplacer("apiVIPs", "api_vips", "ingressVIPs", "ingress_vips").Replace(turned), want: "warning family-order, warning family-order"},
		{source: "validateAPIAndIngressVIPs", platform: "baremetal: apiVIPs: [192.0.2.5, 192.0.2.7], ingressVIPs: [192.0.2.6]", want: "error bad-value"},
		{source: "pkg/validate: SubnetCIDR", platform: "baremetal: " + in},
		{platform: "baremetal: " + in, more: "192.0.2.0/24=>192.0.2.1/24", want: "error bad-network"},

		// Networks that overlap.
		{source: "validateMachineNetwork, validateServiceNetwork, validateClusterNetwork", platform: "baremetal: " + in, more: "  - cidr: 198.51.100.0/24"},
		{platform: "baremetal: " + in, more: "  - cidr: 192.0.2.128/25", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [10.129.0.0/16]", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [10.200.0.0/16]"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 172.30.0.0/15, hostPrefix: 23}]", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14, hostPrefix: 23}]"},
		{source: "validateNetworkNotOverlapDefaultOVNSubnets", platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24", version: "4.19", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24", version: "4.18"},
		{platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24\n  networkType: Calico"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 100.88.0.0/16, hostPrefix: 23}]", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  - cidr: fd97::/64", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  - cidr: fd96::/64"},
		{source: "validateOVNIPv4InternalJoinSubnet", platform: "baremetal: " + in, more: "  - cidr: 100.64.3.0/24\n" + join + "100.66.0.0/16}}"},
		{platform: "baremetal: " + in, more: join + "192.0.0.0/16}}", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: join + "100.66.0.0/23}}", want: "error bad-network"},
		{platform: "baremetal: " + in, more: join + "100.66.0.0/22}}"},
		{platform: "baremetal: " + in, more: join + "100.66.0.1/16}}", want: "error bad-network"},
		{source: "validateOVNKubernetesConfig", platform: "baremetal: " + in, more: join + "100.66.0.0/16}}\n  networkType: Calico", want: "error conflicting-fields"},
		{platform: "baremetal: " + in, more: join + "100.66.0.0/16}}", version: "4.17", want: "warning unknown-field"},
		{source: "pkg/validate: ServiceSubnetCIDR", platform: "baremetal: " + in, more: "  serviceNetwork: [10.96.0.0/11]", want: "error bad-network"},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [10.96.0.0/12]"},

		// Parts of cluster networks.
		{source: "validateClusterNetwork", platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14}]", want: "error missing-field"},
		{platform: "baremetal: " + in, more: "  networkType: Calico\n  clusterNetwork: [{cidr: 10.132.0.0/14}]"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14, hostPrefix: 10}]", want: "error bad-value"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 'fd01::/48', hostPrefix: 60}]", want: "error bad-value"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14, hostPrefix: 23}, {cidr: 10.136.0.0/14, hostPrefix: 24}]", want: "error bad-value"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14, hostPrefix: 23}, {cidr: 10.136.0.0/14, hostPrefix: 24}]", version: "4.18"},

		// Network types.
		{source: "validateNetworking", platform: "baremetal: " + in, more: "  networkType: openshiftsdn", want: "error needs-version"},
		{platform: "baremetal: " + in, more: "  networkType: OpenShiftSDN", version: "4.17", want: "error needs-version"},
		{platform: "baremetal: " + in, more: "  networkType: OpenShiftSDN", version: "4.15", want: "warning needs-version"},
		{platform: "baremetal: " + in, more: "  networkType: OpenShiftSDN", version: "4.14"},
		{platform: "openstack: " + in, more: "  networkType: Kuryr", version: "4.15", want: "error needs-version"},
		{platform: "openstack: " + in, more: "  networkType: Kuryr", version: "4.14"},
		{platform: "baremetal: " + in, more: "  networkType: Cilium"},

		// Names.
		{source: "pkg/validate: OnPremClusterName", platform: "baremetal: " + in, more: "demo=>dev.prod", want: "error bad-name"},
		{platform: "baremetal: " + in, more: "demo=>dev.prod", vip: runs, want: "warning bad-name, warning conflicting-fields"},
		{platform: "baremetal: " + in + users, more: "demo=>dev.prod", vip: strings.Replace(runs, "{vrrp", "{loadBalancer: {type: External}, vrrp", 1), want: "warning bad-name"},
		{platform: "vsphere: " + in, more: "demo=>dev.prod", want: "error bad-name"},
		{platform: "none: ", vip: without, more: "demo=>dev.prod"},
		{source: "pkg/validate: ClusterName", platform: "none: ", vip: without, more: "demo=>" + strings.Repeat("a", 55), want: "error bad-name"},
		{platform: "none: ", vip: without, more: "demo=>" + strings.Repeat("a", 54)},

		// Pools.
		{source: "pkg/types/defaults: SetInstallConfigDefaults", platform: "baremetal: " + in, more: "controlPlane: {name: master}"},
		{platform: "baremetal: " + in, more: "controlPlane: {name: control}", want: "warning bad-name"},
		{source: "validateCompute", platform: "baremetal: " + in, more: "compute: [{name: worker}]"},
		{platform: "baremetal: " + in, more: "compute: [{name: infra}]", want: "error bad-name"},
		{platform: "baremetal: " + in, more: "compute: [{name: worker}, {name: worker}]", want: "error bad-name"},
		{platform: "baremetal: " + in, more: "compute: [{name: worker, fencing: {}}]", want: "error topology"},

		// Two nodes.
		{source: "validateArbiter", platform: "baremetal: " + in, more: arbiter},
		{platform: "none: ", vip: without, more: arbiter},
		{platform: "vsphere: " + in, more: arbiter, want: "error topology"},
		{platform: "baremetal: " + in, more: strings.Replace(arbiter, "1", "0", 1), want: "error topology"},
		{source: "validateFencingForPlatform", platform: "baremetal: " + in, more: fencing + "[{}, {}]}}"},
		{platform: "openstack: " + in, more: fencing + "[{}, {}]}}", want: "error topology"},
		{source: "validateCredentialsNumber", platform: "baremetal: " + in, more: fencing + "[{}]}}", want: "error topology"},
		{platform: "baremetal: " + in, more: fencing + "[{}, {}, {}]}}", want: "error topology"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 2, fencing: {}}", want: "error topology"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 2}", want: "error topology"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 0}", want: "error topology"},
		{platform: "baremetal: " + in, more: "arbiter: {replicas: 1}\n" + fencing + "[{}, {}]}}", want: "error topology"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 3, fencing: {}}"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 3, fencing: {credentials: [{}, {}]}}", want: "error topology"},

		// Features that are previews first.
		{source: "validateGatedFeatures", platform: "baremetal: " + in, more: arbiter, version: "4.19", want: "error needs-version"},
		{platform: "baremetal: " + in, more: arbiter, version: "4.20"},
		{platform: "baremetal: " + in, more: arbiter + preview, version: "4.19"},
		{platform: "baremetal: " + in, more: fencing + "[{}, {}]}}", version: "4.21", want: "error needs-version"},
		{platform: "baremetal: " + in, more: fencing + "[{}, {}]}}", version: "4.22"},
		{platform: "baremetal: " + in, more: fencing + "[{}, {}]}}" + preview, version: "4.21"},
		{platform: "baremetal: " + in + users + ", dnsRecordsType: External", vip: external, want: "error needs-version"},
		{platform: "baremetal: " + in + users + ", dnsRecordsType: External", vip: external, more: preview},
		{platform: "vsphere: " + in + ", hosts: [{role: compute}]", version: "4.15", want: "error needs-version"},
		{platform: "vsphere: " + in + ", hosts: [{role: compute}]", version: "4.16"},
		{source: "ValidateFeatureSet", platform: "baremetal: " + in, more: "featureSet: Mine", want: "error bad-value"},
		{source: "pkg/types/baremetal/validation: validateLoadBalancer", platform: "baremetal: " + in + ", loadBalancer: {type: ''}", want: "error missing-field"},
		{platform: "baremetal: " + in + ", loadBalancer: {}", want: "error missing-field"},
		{platform: "baremetal: " + in + ", loadBalancer: {type: OpenShiftManagedDefault}"},
		{platform: "baremetal: " + in + users, version: "4.12", want: "error needs-version"},

		// Single nodes, and the agent-based method.
		{source: "ValidateInstallConfig", platform: "baremetal: " + in, more: single + "\nbootstrapInPlace: {}", want: "error topology"},
		{platform: "none: ", vip: without, more: single + "\nbootstrapInPlace: {}"},
		{source: "pkg/asset/agent/installconfig.go: validateSNOConfiguration", platform: "baremetal: " + in, more: single, agent: agent, want: "error topology"},
		{platform: "baremetal: " + in, more: single, agent: agent, vip: runs, want: "error topology, warning conflicting-fields"},
		{platform: "baremetal: " + in, more: single, agent: strings.Split(agent, "rendezvous")[0]}, // addresses alone
		{platform: "none: ", vip: without, more: "controlPlane: {replicas: 1}", agent: agent, want: "error topology"},
		{platform: "none: ", vip: without, more: "  networkType: Calico\n" + single, agent: agent, want: "error topology"},
		{source: "pkg/asset/agent/installconfig.go: validateControlPlaneConfiguration", platform: "baremetal: " + in, more: "controlPlane: {replicas: 6}", agent: agent, want: "error topology"},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 5}", agent: agent},
		{platform: "baremetal: " + in, more: "controlPlane: {replicas: 6}"},
		{source: "pkg/asset/agent/installconfig.go: ValidateSupportedPlatforms", platform: "openstack: " + in, agent: agent, want: "error conflicting-fields"},
		{platform: "nutanix: " + in, agent: agent, version: "4.19"},

		// Fields that no installer has, or only some.
		{source: "pkg/asset/installconfig: LoadFromFile", platform: "baremetal: aipVIPs: [192.0.2.9], " + in, want: "error unknown-field"},
		{platform: "baremetal: " + in, more: "fencing: {credentials: [{}, {}]}", want: "error unknown-field"},
		{platform: "baremetal: " + in, more: "hunter: 2", want: "warning unknown-field"},
		{platform: "baremetal: " + in, more: "osImageStream: rhel-9", version: "4.21", want: "warning unknown-field"},
		{platform: "baremetal: " + in, more: "osImageStream: rhel-9", version: "4.22"},
		{platform: "baremetal: apivips: [192.0.2.5], ingressVips: [192.0.2.6]", want: "warning unknown-field, warning unknown-field"},
		{platform: "baremetal: " + in, more: "baseDomain=>basedomain", want: "warning unknown-field"},
		{platform: "baremetal: " + in, agent: agent},
		{platform: "baremetal: " + in, agent: agent + "kind: AgentConfig\n"},
		{platform: "baremetal: " + in, agent: agent + "kind: Infrastructure\n", want: "error wrong-kind"}, // another file
		{platform: "baremetal: apiVIP: 192.0.2.5, ingressVIP: 192.0.2.6", want: "warning deprecated"},

		// Input that the installer accepts, and vipgen refuses: docs/input.md has the reasons.
		{source: "SetMachinePoolDefaults", platform: "baremetal: " + in, more: "controlPlane: {replicas: 3.0}", want: "error wrong-type"},
		{source: "validateArbiter", platform: "baremetal: " + in, more: "arbiter: {replicas: 1}", want: "error topology"},
		{platform: "baremetal: " + in, more: "arbiter: {replicas: 2}\ncontrolPlane: {replicas: 2}", want: "error topology"},
		{source: "pkg/validate: DomainName", platform: "baremetal: " + in, more: "example.com=>" + strings.Repeat("a", 64) + ".com", want: "error bad-name"},
		{platform: "baremetal: " + in, more: "example.com=>" + strings.Repeat("a", 63) + ".com"},
		{source: "validateClusterNetwork", platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14, hostPrefix: 33}]", want: "error bad-value"},
		{source: "ValidatePlatform", platform: "baremetal: " + in + ", dnsRecordsType: Mine", want: "error bad-value"},

		// Platforms without VIPs.
		{source: "validatePlatform", platform: "aws: ", want: "error cloud-platform"},
		{platform: "powervc: ", want: "error bad-value"},
	} {
		if source = cmp.Or(tt.source, source); source == "" {
			t.Fatalf("%s: no source", tt.platform)
		}
		text := "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: demo}\nnetworking:\n  machineNetwork:\n  - cidr: 192.0.2.0/24\n"
		platform := strings.TrimLeft(tt.platform, "+-")
		switch tt.platform[:len(tt.platform)-len(platform)] {
		case "+":
			text += "  - cidr: 2001:db8::/64\n"
		case "++":
			text += "  - cidr: 2001:db8::/64\n  clusterNetwork: " + podsBoth + "\n  serviceNetwork: [172.30.0.0/16, 'fd02::/112']\n"
		case "-": // IPv6 first
			text = strings.Replace(text, "  - cidr: 192", "  - cidr: 2001:db8::/64\n  - cidr: 192", 1) +
				"  clusterNetwork: [{cidr: 'fd01::/48', hostPrefix: 64}, {cidr: 10.128.0.0/14, hostPrefix: 23}]\n  serviceNetwork: ['fd02::/112', 172.30.0.0/16]\n"
		}
		old, fresh, replace := strings.Cut(tt.more, "=>")
		if replace {
			text = strings.Replace(text, old, fresh, 1)
		} else if tt.more != "" {
			text += tt.more + "\n"
		}
		name, settings, _ := strings.Cut(platform, ": ")
		text += fmt.Sprintf("platform: {%s: {%s}}\n", name, settings)
		s := render.Sources{InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(text)}}
		if tt.agent != "" {
			s.AgentConfig = &render.File{Name: "agent-config.yaml", Data: []byte(tt.agent)}
		}
		if tt.vip != "" {
			s.VIPConfig = &render.File{Name: "vipgen.yaml", Data: []byte(tt.vip)}
		}
		c, list, err := render.Load(s, render.Options{OpenShiftVersion: tt.version})
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprintf("%s %s", p.Severity, p.Code))
			if p.Line == 0 || p.Column == 0 {
				t.Errorf("no place: %s", p)
			}
		}
		testkit.Equal(testkit.In(t, source, tt.platform, tt.more, tt.version, list.Error()), tt.want, strings.Join(got, ", "))
		if refused := strings.Contains(tt.want, "error"); refused != (err != nil) || refused != (c == nil) {
			t.Errorf("%s %s: %v, rendered %t", tt.platform, tt.more, err, c != nil)
		}
	}
}

// Warnings about unpinned images are last, once, with a position; those about old spellings
// appear once per file.
func TestUnpinnedImagesComeLast(t *testing.T) {
	const text = `apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
imageContentSources: [{source: quay.io/openshift, mirrors: [registry.example.com/openshift]}]
networking: {machineCIDR: 192.0.2.0/24}
platform: {baremetal: {apiVIP: 192.0.2.2, ingressVIPs: [192.0.2.3]}}
`
	_, list, err := render.Load(render.Sources{InstallConfig: render.File{Name: "ic.yaml", Data: []byte(text)}}, render.Options{})
	testkit.Must(t, err)
	want := `ic.yaml:4:1: warning: imageContentSources: found an old spelling, expected imageDigestSources (also networking.machineCIDR on line 5: machineNetwork; platform.baremetal.apiVIP on line 6: apiVIPs) [deprecated]
ic.yaml:4:23: warning: imageContentSources[0]: found tags for agent, keepalived, haproxy, coredns, expected digests, as mirrors of the install-config work by digest only (give images in vipgen.yaml, or --release-info; see 'vipgen images') [unpinned-image]`
	testkit.Equal(t, want, list.Error())
}
