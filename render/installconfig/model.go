package installconfig

import (
	"net/netip"

	"github.com/vipgen/vipgen/render/source"
)

// InstallConfig is what vipgen uses of an install-config.yaml, with the
// installer's defaults filled in.
type InstallConfig struct {
	// Doc finds the position of a field, for problems found later.
	Doc *source.Document
	// Name is metadata.name; it may have several DNS labels.
	Name string
	// BaseDomain has no dot at its end.
	BaseDomain string

	MachineNetworks []Network
	// ClusterNetworks and ServiceNetworks are empty when the file names none
	// and no machine network is IPv4.
	ClusterNetworks, ServiceNetworks []Network
	// JoinNetwork is OVN-Kubernetes' internal one, nil where the file leaves it to the
	// default.
	JoinNetwork *Network
	NetworkType string

	ControlPlane Pool
	Compute      []Pool
	// Arbiter is nil when the cluster has none.
	Arbiter *Pool
	// Fencing tells that the control plane has fencing, with so many credentials.
	Fencing            bool
	FencingCredentials int

	// Platform is the key under platform, of one that is on premises
	// (assets.Platforms), or empty.
	Platform string
	// APIVIPs and IngressVIPs hold at most one address of each family, in the
	// order of the file.
	APIVIPs, IngressVIPs []Address
	// DNSVIP is nil but for clusters of the first 4.x releases.
	DNSVIP *Address
	// APIFloatingIP and IngressFloatingIP lead to VIPs from outside of an OpenStack;
	// nil where the file names none.
	APIFloatingIP, IngressFloatingIP *Address
	// LoadBalancer is "", OpenShiftManagedDefault or UserManaged.
	LoadBalancer string
	// ExternalDNS says that the name servers of the site have the records of the
	// API and of the default ingress controller (dnsRecordsType: External).
	ExternalDNS bool
	// BootstrapIP is the static address of the bootstrap host; nil where the
	// file leaves it to DHCP.
	BootstrapIP *Address
	// Hosts are those that the file lists, in its order.
	Hosts []Host

	Mirrors    []Mirror
	FeatureSet string
	// BootstrapInPlace tells that a single node installs itself.
	BootstrapInPlace bool
	// Newer are the fields of the file that not every release has.
	Newer []Newer
}

// AgentConfig is what vipgen uses of an agent-config.yaml.
type AgentConfig struct {
	// Doc finds the position of a field, for problems found later.
	Doc *source.Document
	// RendezvousIP is the address of the host that bootstraps the cluster;
	// nil when the file leaves it to the installer.
	RendezvousIP *Address
	Hosts        []Host
}

// Network is an IP network, without host bits.
type Network struct {
	netip.Prefix
	// Field is where it stands, or would stand when Default is set.
	Field string
	// Default tells that the file does not have it.
	Default bool
	// HostPrefix is how long the prefix of each node's part of a cluster network is.
	HostPrefix int
}

// Address is a unicast IP address without zone.
type Address struct {
	netip.Addr
	// Field is where it stands, or would stand when Default is set.
	Field string
	// Default tells that the file does not have it.
	Default bool
}

// Prefix is a host's address with the length of its network's prefix.
type Prefix struct {
	netip.Prefix
	Field string
}

// Pool is a set of machines of one role.
type Pool struct {
	// Name is the name of the MachineConfigPool.
	Name string
	// Field is where the pool stands, or would stand.
	Field    string
	Replicas int
}

// Host is a machine that the file names.
type Host struct {
	// Name is empty where the file gives none; vSphere hosts never have one.
	Name string
	// Role is master, worker, arbiter, bootstrap (vSphere only), or empty
	// when the installer chooses.
	Role  string
	Field string
	// Addresses are its static addresses, in the order of the file.
	Addresses []Prefix
}

// Mirror says where images of a repository are found too.
type Mirror struct {
	Source  string
	Mirrors []string
	Field   string
}
