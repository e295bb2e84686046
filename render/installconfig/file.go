package installconfig

import "net/netip"

// The types in this file declare the fields that are read, spelled as in the installer's
// pkg/types. Other fields are never decoded.

type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	BaseDomain          string       `json:"baseDomain"`
	Networking          fileNetworks `json:"networking"`
	ControlPlane        filePool     `json:"controlPlane"`
	Compute             []filePool   `json:"compute"`
	Arbiter             *filePool    `json:"arbiter"`
	Platform            filePlatform `json:"platform"`
	ImageDigestSources  []fileMirror `json:"imageDigestSources"`
	ImageContentSources []fileMirror `json:"imageContentSources"`
	FeatureSet          string       `json:"featureSet"`
}

type fileNetworks struct {
	NetworkType    string               `json:"networkType"`
	MachineNetwork []fileNetwork        `json:"machineNetwork"`
	ClusterNetwork []fileClusterNetwork `json:"clusterNetwork"`
	ServiceNetwork []netip.Prefix       `json:"serviceNetwork"`
	OVNKubernetes  struct {
		IPv4 struct {
			JoinSubnet netip.Prefix `json:"internalJoinSubnet"`
		} `json:"ipv4"`
	} `json:"ovnKubernetesConfig"`

	// Until 4.2, in v1beta3 and v1beta4.
	Type            string               `json:"type"`
	MachineCIDR     netip.Prefix         `json:"machineCIDR"`
	ServiceCIDR     netip.Prefix         `json:"serviceCIDR"`
	ClusterNetworks []fileClusterNetwork `json:"clusterNetworks"`
}

type fileNetwork struct {
	CIDR netip.Prefix `json:"cidr"`
}

type fileClusterNetwork struct {
	fileNetwork
	HostPrefix int `json:"hostPrefix"`

	// Until 4.2.
	HostSubnetLength int `json:"hostSubnetLength"`
}

type filePool struct {
	Name     string       `json:"name"`
	Replicas *int         `json:"replicas"`
	Fencing  *fileFencing `json:"fencing"`
}

// fileFencing counts credentials without decoding them.
type fileFencing struct {
	Credentials []struct{} `json:"credentials"`
}

type filePlatform struct {
	BareMetal struct {
		fileVIPs
		BootstrapIP netip.Addr          `json:"bootstrapExternalStaticIP"`
		Hosts       []fileBareMetalHost `json:"hosts"`
		BGP         fileBGP             `json:"bgpVIPConfig"`
	} `json:"baremetal"`
	VSphere struct {
		fileVIPs
		Hosts []fileVSphereHost `json:"hosts"`
	} `json:"vsphere"`
	OpenStack fileOpenStack `json:"openstack"`
	Nutanix   fileVIPs      `json:"nutanix"`
	Ovirt     fileOvirtVIPs `json:"ovirt"`

	// These platforms have no VIPs; VIPs below them are a mistake.
	None     fileVIPs `json:"none"`
	External fileVIPs `json:"external"`
}

type fileVIPs struct {
	APIVIPs      []netip.Addr      `json:"apiVIPs"`
	APIVIP       netip.Addr        `json:"apiVIP"`
	IngressVIPs  []netip.Addr      `json:"ingressVIPs"`
	IngressVIP   netip.Addr        `json:"ingressVIP"`
	DNSVIP       netip.Addr        `json:"dnsVIP"`
	LoadBalancer *fileLoadBalancer `json:"loadBalancer"`
	DNSRecords   string            `json:"dnsRecordsType"`
}

type fileOpenStack struct {
	fileVIPs
	APIFloatingIP     netip.Addr `json:"apiFloatingIP"`
	IngressFloatingIP netip.Addr `json:"ingressFloatingIP"`

	// Until 4.5.
	LBFloatingIP netip.Addr `json:"lbFloatingIP"`
}

// fileOvirtVIPs has the same fields, in oVirt's spelling.
type fileOvirtVIPs struct {
	APIVIPs      []netip.Addr      `json:"api_vips"`
	APIVIP       netip.Addr        `json:"api_vip"`
	IngressVIPs  []netip.Addr      `json:"ingress_vips"`
	IngressVIP   netip.Addr        `json:"ingress_vip"`
	DNSVIP       netip.Addr        `json:"dns_vip"`
	LoadBalancer *fileLoadBalancer `json:"loadBalancer"`
	DNSRecords   string            `json:"dnsRecordsType"`
}

type fileLoadBalancer struct {
	Type string `json:"type"`
}

type fileMirror struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors"`
}

type fileBareMetalHost struct {
	Name          string        `json:"name"`
	Role          string        `json:"role"`
	NetworkConfig fileState     `json:"networkConfig"`
	BGPPeers      []fileBGPPeer `json:"bgpPeers"`
}

type fileVSphereHost struct {
	Role          string `json:"role"`
	NetworkDevice struct {
		IPAddrs []netip.Prefix `json:"ipAddrs"`
	} `json:"networkDevice"`
}

// fileState is the part of an NMState description with addresses.
type fileState struct {
	Interfaces []struct {
		Name  string         `json:"name"`
		Type  string         `json:"type"`
		State string         `json:"state"`
		IPv4  fileStateStack `json:"ipv4"`
		IPv6  fileStateStack `json:"ipv6"`
	} `json:"interfaces"`
}

type fileStateStack struct {
	Enabled *bool `json:"enabled"`
	DHCP    bool  `json:"dhcp"`
	Address []struct {
		IP           netip.Addr `json:"ip"`
		PrefixLength *int       `json:"prefix-length"`
	} `json:"address"`
}

type agentFile struct {
	APIVersion   string     `json:"apiVersion"`
	Kind         string     `json:"kind"`
	RendezvousIP netip.Addr `json:"rendezvousIP"`
	Hosts        []struct {
		Hostname      string    `json:"hostname"`
		Role          string    `json:"role"`
		NetworkConfig fileState `json:"networkConfig"`
	} `json:"hosts"`
}
