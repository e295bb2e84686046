package installconfig

import (
	"slices"
	"strings"
)

// fieldTable lists the fields of an install-config by mapping, for the top level and for every
// mapping that is read here, each with its first release where that is later than 4.12 (the
// installer's pkg/types of each release: InstallConfig, Networking, MachinePool, and Platform
// and Host of each platform). Since 4.22 the installer refuses others (pkg/asset/installconfig,
// LoadFromFile), before it ignores them. Other mappings are not checked.
var fieldTable = map[string]string{
	"": "additionalTrustBundle additionalTrustBundlePolicy apiVersion arbiter@4.19 baseDomain bootstrapInPlace capabilities compute " +
		"controlPlane cpuPartitioningMode@4.13 credentialsMode featureGates@4.14 featureSet fips imageContentSources " +
		"imageDigestSources@4.14 kind metadata networking operatorPublishingStrategy@4.15 osImageStream@4.22 pki@5.0 platform proxy " +
		"publish pullSecret sshKey",
	"metadata": "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation labels " +
		"managedFields name namespace ownerReferences resourceVersion selfLink uid",
	"networking":                             "clusterNetwork clusterNetworkMTU@4.15 clusterNetworks machineCIDR machineNetwork networkType ovnKubernetesConfig@4.18 serviceCIDR serviceNetwork type",
	"networking.machineNetwork[]":            "cidr",
	"networking.clusterNetwork[]":            "cidr hostPrefix hostSubnetLength",
	"networking.clusterNetworks[]":           "cidr hostPrefix hostSubnetLength",
	"networking.ovnKubernetesConfig":         "ipv4",
	"networking.ovnKubernetesConfig.ipv4":    "internalJoinSubnet",
	"controlPlane":                           machinePool + " fencing@4.19",
	"arbiter":                                machinePool,
	"compute[]":                              machinePool + " fencing@4.19",
	"controlPlane.fencing":                   "credentials",
	"imageContentSources[]":                  "mirrors source",
	"imageDigestSources[]":                   "mirrors source sourcePolicy@4.21",
	"platform":                               strings.Join(slices.Concat(onPremises, clouds, others), " "),
	"platform.baremetal.loadBalancer":        "type",
	"platform.vsphere.loadBalancer":          "type",
	"platform.openstack.loadBalancer":        "type",
	"platform.nutanix.loadBalancer":          "type",
	"platform.ovirt.loadBalancer":            "type",
	"platform.baremetal.hosts[]":             "bgpPeers@5.0 bmc bootMACAddress bootMode hardwareProfile name networkConfig role rootDeviceHints",
	"platform.vsphere.hosts[]":               "failureDomain networkDevice role",
	"platform.vsphere.hosts[].networkDevice": "gateway ipAddrs nameservers",
	"platform.baremetal": "additionalNTPServers@4.18 apiVIP apiVIPs bgpVIPConfig@5.0 bmcVerifyCA@4.21 bootstrapExternalStaticDNS@4.14 " +
		"bootstrapExternalStaticGateway bootstrapExternalStaticIP bootstrapOSImage bootstrapProvisioningIP clusterOSImage " +
		"clusterProvisioningIP defaultMachinePlatform dnsRecordsType@4.21 externalBridge externalMACAddress hosts ingressVIP ingressVIPs " +
		"libvirtURI loadBalancer@4.13 provisioningBridge provisioningDHCPExternal provisioningDHCPRange provisioningHostIP " +
		"provisioningMACAddress provisioningNetwork provisioningNetworkCIDR provisioningNetworkGateway@4.22 provisioningNetworkInterface",
	"platform.vsphere": "apiVIP apiVIPs cluster clusterOSImage datacenter defaultDatastore defaultMachinePlatform diskType dnsRecordsType@4.21 " +
		"failureDomains folder hosts@4.14 ingressVIP ingressVIPs loadBalancer@4.13 network nodeNetworking@4.18 password resourcePool username vCenter vcenters",
	"platform.openstack": "apiFloatingIP apiVIP apiVIPs cloud clusterOSImage clusterOSImageProperties computeFlavor controlPlanePort@4.14 " +
		"defaultMachinePlatform dnsRecordsType@4.21 externalDNS externalNetwork ingressFloatingIP ingressVIP ingressVIPs lbFloatingIP " +
		"loadBalancer@4.13 machinesSubnet octaviaSupport region trunkSupport",
	"platform.nutanix": "apiVIP apiVIPs clusterOSImage defaultMachinePlatform dnsRecordsType@4.21 failureDomains@4.15 ingressVIP ingressVIPs " +
		"loadBalancer@4.13 preloadedOSImageName@4.18 prismAPICallTimeout@4.16 prismCentral prismElements subnetUUIDs",
	"platform.ovirt": "affinityGroups api_vip api_vips defaultMachinePlatform ingress_vip ingress_vips loadBalancer@4.13 ovirt_cluster_id " +
		"ovirt_network_name ovirt_storage_domain_id vnicProfileID",
	"platform.external": "cloudControllerManager@4.15 platformName",
	"platform.none":     "",

	"platform.baremetal.bgpVIPConfig":         "communities localASN peers",
	"platform.baremetal.bgpVIPConfig.peers[]": bgpPeer,
	"platform.baremetal.hosts[].bgpPeers[]":   bgpPeer,
}

// bgpPeer lists the fields of a router, also those of the draft.
const bgpPeer = "bfdEnabled ebgpMultiHop failureDetection holdTime holdTimeSeconds keepaliveTime keepaliveTimeSeconds password peerAddress peerASN peerReachability port"

// machinePool lists the fields of every pool.
const machinePool = "architecture diskSetup@4.20 hyperthreading management@4.22 name platform replicas"

// knownFields is fieldTable in the decoder's form.
var knownFields = func() map[string][]string {
	known := map[string][]string{}
	for at, names := range fieldTable {
		known[at] = nil
		for _, name := range strings.Fields(names) {
			name, _, _ = strings.Cut(name, "@")
			known[at] = append(known[at], name)
		}
	}
	return known
}()

// Newer is a field that older releases do not have.
type Newer struct{ Field, Since string }

// newer returns the fields of the file that not every release has, sorted by path, without
// those of list items.
func (r *reader) newer() (list []Newer) {
	for at, names := range fieldTable {
		if strings.HasSuffix(at, "[]") {
			continue
		}
		for _, name := range strings.Fields(names) {
			field, since, later := strings.Cut(strings.TrimPrefix(at+"."+name, "."), "@")
			if later && r.doc.Has(field) {
				list = append(list, Newer{field, since})
			}
		}
	}
	slices.SortFunc(list, func(a, b Newer) int { return strings.Compare(a.Field, b.Field) })
	return list
}
