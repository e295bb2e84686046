package installconfig

import (
	"net/netip"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/source"
)

// InstallConfig holds the part of an install-config.yaml that vipgen uses, with the installer's
// defaults filled in.
type InstallConfig struct {
	// Doc locates fields for later problems.
	Doc *source.Document
	// Name is metadata.name; it may have several DNS labels.
	Name string
	// BaseDomain has no trailing dot.
	BaseDomain string

	MachineNetworks []Network
	// ClusterNetworks and ServiceNetworks are empty when the file names none
	// and no machine network is IPv4.
	ClusterNetworks, ServiceNetworks []Network
	// JoinNetwork is OVN-Kubernetes' internal network; nil where the file leaves it to the
	// default.
	JoinNetwork *Network
	NetworkType string

	ControlPlane Pool
	Compute      []Pool
	// Arbiter is nil when the cluster has none.
	Arbiter *Pool
	// Fencing is set where the control plane has fencing, with so many credentials.
	Fencing            bool
	FencingCredentials int

	// Platform is the key below platform if it is on premises (assets.Platforms), or empty.
	Platform string
	// APIVIPs and IngressVIPs hold at most one address of each family, in the
	// order of the file.
	APIVIPs, IngressVIPs []Address
	// DNSVIP is set for clusters of the first 4.x releases alone.
	DNSVIP *Address
	// APIFloatingIP and IngressFloatingIP are OpenStack's floating IPs of the VIPs, or nil.
	APIFloatingIP, IngressFloatingIP *Address
	// BGP holds the routers of OpenShift's preview of VIPs by BGP; nil without.
	BGP *BGP
	// LoadBalancer is "", OpenShiftManagedDefault or UserManaged.
	LoadBalancer string
	// ExternalDNS is set where the site's name servers have the records of the API and of the
	// default ingress controller (dnsRecordsType: External).
	ExternalDNS bool
	// BootstrapIP is the static address of the bootstrap host; nil where the
	// file leaves it to DHCP.
	BootstrapIP *Address
	// Hosts are the hosts in the order of the file.
	Hosts []Host

	Mirrors    []Mirror
	FeatureSet string
	// BootstrapInPlace is set where a single node installs itself.
	BootstrapInPlace bool
	// Newer are the fields of the file that not every release has.
	Newer []Newer
}

// AgentConfig holds the part of an agent-config.yaml that vipgen uses.
type AgentConfig struct {
	// Doc locates fields for later problems.
	Doc *source.Document
	// RendezvousIP is the address of the host that bootstraps the cluster;
	// nil when the file leaves it to the installer.
	RendezvousIP *Address
	Hosts        []Host
}

// Network is an IP network, without host bits.
type Network struct {
	netip.Prefix
	// Field is its source, also when Default is set.
	Field string
	// Default is set where the file does not have it.
	Default bool
	// HostPrefix is the prefix length of each node's part of a cluster network.
	HostPrefix int
}

// Prefixes returns networks as prefixes.
func Prefixes(list []Network) []netip.Prefix {
	return lists.Map(list, func(n Network) netip.Prefix { return n.Prefix })
}

// Address is a unicast IP address without zone.
type Address struct {
	netip.Addr
	// Field is its source, also when Default is set.
	Field string
	// Default is set where the file does not have it.
	Default bool
}

// Prefix is a host's address with the prefix length of its network.
type Prefix struct {
	netip.Prefix
	Field string
}

// Pool is a set of machines of one role.
type Pool struct {
	// Name is the name of the MachineConfigPool.
	Name string
	// Field is the source of the pool, also when the file has none
	Field    string
	Replicas int
}

// Host is a machine that the file names.
type Host struct {
	// Name is empty where the file has none; vSphere hosts never have one.
	Name string
	// Role is master, worker, arbiter, bootstrap (vSphere only), or empty
	// when the installer chooses.
	Role  string
	Field string
	// Addresses are its static addresses, in the order of the file.
	Addresses []Prefix
}

// Mirror is a repository with its mirrors.
type Mirror struct {
	Source string
	Field  string
}
