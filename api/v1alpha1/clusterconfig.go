package v1alpha1

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/lists"
)

// ClusterConfig holds every fact about a cluster that its nodes need, in one file:
// /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml. It is the same for every node of
// the cluster. vipgen writes it, vipgen-agent reads it; users read it, and change VIPConfig or
// install-config.yaml instead.
type ClusterConfig struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   ClusterMetadata   `json:"metadata"`
	Spec       ClusterConfigSpec `json:"spec"`
}

// ClusterMetadata names the cluster.
type ClusterMetadata struct {
	// Name is the cluster's name, which may have several labels ("dev.prod").
	Name string `json:"name"`
}

// ClusterConfigSpec holds the facts that nodes need.
type ClusterConfigSpec struct {
	// Domain is "<name>.<base domain>".
	Domain string `json:"domain"`
	// Platform is the install-config's platform key, such as "baremetal".
	Platform string `json:"platform"`
	// Topology is the topology of the control plane.
	Topology Topology `json:"topology"`
	// ControlPlane describes the control-plane nodes.
	ControlPlane ControlPlane `json:"controlPlane"`
	// LoadBalancer is InCluster where the nodes hold the VIPs.
	LoadBalancer LoadBalancerType `json:"loadBalancer"`
	// APIServer holds the path of the nodes' own connections to the API.
	APIServer APIServer `json:"apiServer,omitzero"`
	// MachineNetworks are the networks of the nodes in the install-config, primary family
	// first. They are not those of the nodes if they lack VIPs: use NodeNetworks.
	MachineNetworks []netip.Prefix `json:"machineNetworks"`
	// Announce selects how the network finds the VIPs of groups without a value of their own;
	// empty means VRRP.
	Announce Announce `json:"announce,omitempty"`
	// BGP holds the routers, complete with defaults; empty unless VIPs are announced by bgp.
	BGP BGP `json:"bgp,omitzero"`
	// VRRP holds the VRRP settings; empty where keepalived does not run.
	VRRP ClusterVRRP `json:"vrrp,omitzero"`
	// Groups are the sets of VIPs that move together, each with a VRRP instance per address
	// family.
	Groups []Group `json:"groups"`
	// Peers are the nodes whose addresses were known at rendering; the Node watch adds and
	// corrects peers.
	Peers []Peer `json:"peers,omitempty"`
	// DNS configures the DNS server on every node.
	DNS ClusterDNS `json:"dns"`
	// Ports are the ports of the services on every node; none is 0, but for BGPMonitor where
	// that job does not run.
	Ports Ports `json:"ports"`
	// Metrics selects the addresses that serve the agents' metrics; empty means loopback.
	Metrics MetricsAddress `json:"metrics,omitempty"`
}

// ByVRRP reports whether keepalived elects the holders of VIPs, of some groups at least.
func (s *ClusterConfigSpec) ByVRRP() bool {
	return s.LoadBalancer == LoadBalancerInCluster && (!s.Announce.Routed() || slices.ContainsFunc(s.Groups, s.elected))
}

// Routed reports whether the nodes have VIPs, of some groups at least, as host routes that
// routers know.
func (s *ClusterConfigSpec) Routed() bool {
	return s.LoadBalancer == LoadBalancerInCluster && s.RoutedBy() != ""
}

// RoutedBy returns how routers learn of VIPs, by bgp or by table; "" where none are routed.
func (s *ClusterConfigSpec) RoutedBy() Announce {
	all := []Announce{s.Announce}
	for i := range s.Groups {
		all = append(all, s.Groups[i].Announce)
	}
	if i := slices.IndexFunc(all, Announce.Routed); i >= 0 {
		return all[i]
	}
	return ""
}

// AnnounceOf returns how the network finds the VIPs of a group.
func (s *ClusterConfigSpec) AnnounceOf(g *Group) Announce {
	return cmp.Or(g.Announce, s.Announce, AnnounceVRRP)
}

func (s *ClusterConfigSpec) elected(g Group) bool { return !s.AnnounceOf(&g).Routed() }

// Elected returns the spec with the groups alone whose holders keepalived elects.
func (s *ClusterConfigSpec) Elected() *ClusterConfigSpec { return s.only(s.elected) }

// Announced returns the spec with the groups alone that routers know.
func (s *ClusterConfigSpec) Announced() *ClusterConfigSpec {
	return s.only(func(g Group) bool { return !s.elected(g) })
}

func (s *ClusterConfigSpec) only(wanted func(Group) bool) *ClusterConfigSpec {
	out := *s
	out.Groups = lists.Filter(s.Groups, wanted)
	return &out
}

// OperatorHasVIPs reports whether the operator knows VIPs on the platform, and its node-ip
// looks for their network (machine-config-operator, templates/common/on-prem).
func (s *ClusterConfigSpec) OperatorHasVIPs() bool {
	return s.Platform != "none" && s.Platform != "external"
}

// LocalAPI reports whether a node's own connections to an API VIP go to its HAProxy, wherever
// the VIP is.
func (s *ClusterConfigSpec) LocalAPI(role string) bool {
	return s.APIServer.Local != LocalAPINone && s.RunsHAProxy(role)
}

// RunsHAProxy reports whether nodes of a role run HAProxy.
func (s *ClusterConfigSpec) RunsHAProxy(role string) bool {
	return s.LoadBalancer == LoadBalancerInCluster && role != RoleBootstrap &&
		(ControlPlaneRole(role) || s.APIServer.Local == LocalAPIAllNodes)
}

// ControlPlaneRole reports whether a role is of the control plane: its HAProxy takes all
// connections to the API VIPs, that of other nodes their own alone.
func ControlPlaneRole(role string) bool { return role == RoleMaster || role == RoleArbiter }

// Topology of a control plane, as OpenShift's Infrastructure calls it.
type Topology string

const (
	TopologyHighlyAvailable        Topology = "HighlyAvailable"
	TopologyHighlyAvailableArbiter Topology = "HighlyAvailableArbiter"
	TopologyDualReplica            Topology = "DualReplica"
	TopologySingleReplica          Topology = "SingleReplica"
)

// ControlPlane describes the control-plane nodes.
type ControlPlane struct {
	// Replicas is the wanted number of nodes.
	Replicas int `json:"replicas"`
	// Schedulable is set where they run workloads, and so routers.
	Schedulable bool `json:"schedulable,omitempty"`
}

// ClusterVRRP holds the VRRP settings.
type ClusterVRRP struct {
	// Target holds the settings to run.
	Target VRRPSettings `json:"target"`
	// Start holds the settings until the migration to Target, compatible with the
	// operator's own keepalived on the bootstrap host (hard case 23). Absent where Target
	// applies from the first packet.
	Start *VRRPSettings `json:"start,omitempty"`
}

// Initial returns the settings of a node without others.
func (v ClusterVRRP) Initial() VRRPSettings {
	if v.Start != nil {
		return *v.Start
	}
	return v.Target
}

// LikeOpenShift reports whether nodes start in the settings of OpenShift's own keepalived,
// which may then run on the bootstrap host, and on nodes that vipgen's files have not reached
// yet.
func (v ClusterVRRP) LikeOpenShift() bool { return v.Initial() == ClassicSettings(ModeUnicast) }

// VRRPSettings is a set of VRRP settings. Nodes with different ones do not interoperate.
type VRRPSettings struct {
	Profile Profile `json:"profile"`
	Mode    Mode    `json:"mode"`
	// Version is VRRP's for IPv4; IPv6 always has 3.
	Version int `json:"version"`
	// AdvertIntervalMS is the time between adverts in milliseconds.
	AdvertIntervalMS int `json:"advertIntervalMS"`
}

// LikeOperator reports whether the settings are those of the operator's own keepalived, which
// may then run on other nodes. Nodes send adverts like it, from the same address
// (Node.BindAsListed), until they migrate to other settings together.
func (v VRRPSettings) LikeOperator() bool { return v == ClassicSettings(v.Mode) }

// GroupRole is the service behind the VIPs of a group.
type GroupRole string

const (
	GroupAPI     GroupRole = "API"
	GroupIngress GroupRole = "Ingress"
	GroupDNS     GroupRole = "DNS"
)

// Group is a set of VIPs with one purpose, one per address family.
type Group struct {
	// Name is unique, lower case: "api", "ingress", "dns", "api-<name>",
	// "ingress-<name>".
	Name string    `json:"name"`
	Role GroupRole `json:"role"`
	// Announce selects how the network finds the VIPs, where that is not spec.announce.
	Announce Announce `json:"announce,omitempty"`
	// VIPs holds one or two addresses, primary family first.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Instance is the name of the VRRP instances, to which the agent appends the number of the
	// address: "<cluster>_API". Like the fields up to Together, it is empty where the load
	// balancer is external, and where routers know the VIPs.
	Instance string `json:"instance,omitempty"`
	// VirtualRouterID is 1 to 255, for both families.
	VirtualRouterID int `json:"virtualRouterID,omitempty"`
	// Password is VRRPv2's PASS password, in clear text in every advert: it gives no security,
	// but the operator's own keepalived has it.
	Password string `json:"password,omitempty"`
	// Together requires the VIPs of both families to be on one node, because they share a
	// Neutron port (hard case 14).
	Together bool `json:"together,omitempty"`
	// Names are exact names that resolve to an API group's VIPs, without those of the first API
	// group, api and api-int in the cluster's domain.
	Names []string `json:"names,omitempty"`
	// Domains are the domains whose names all resolve to an ingress group's VIPs.
	Domains []string `json:"domains,omitempty"`
	// Controller is the name of the IngressController of an ingress group.
	Controller string `json:"controller,omitempty"`
	// NodeSelector selects by label the nodes that take part in an ingress group.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// HealthPort is the port of an ingress group's router.
	HealthPort int `json:"healthPort,omitempty"`
}

// FirstAPI is the name of the group of the API VIPs that every cluster has.
const FirstAPI = "api"

// AdditionalAPI reports whether the group has API VIPs besides the first ones: for clients,
// which exist once the cluster runs. So the bootstrap host never holds them, and they serve no
// machine configs.
func (g *Group) AdditionalAPI() bool {
	return g.Role == GroupAPI && strings.HasPrefix(g.Name, FirstAPI+"-")
}

// SharedWithOperator reports whether the operator's own keepalived elects a holder of the group's
// VIPs as well. It has one group of each role; vipgen's further ones are called "<role>-<name>".
func (g *Group) SharedWithOperator() bool { return !strings.Contains(g.Name, "-") }

// APINames returns the exact names that resolve to the VIPs of an API group.
func (s *ClusterConfigSpec) APINames(g *Group) []string {
	if g.AdditionalAPI() {
		return g.Names
	}
	return append([]string{"api." + s.Domain, "api-int." + s.Domain}, g.Names...)
}

// ClusterDNS holds the upstream servers and records of the DNS server on every node, besides the
// VIPs' names.
type ClusterDNS struct {
	// Upstreams replace the name servers of the node's network.
	Upstreams []netip.Addr `json:"upstreams,omitempty"`
	Records   []DNSRecord  `json:"records,omitempty"`
	// External is set where another name server has the records of the API and of the default
	// ingress controller (dnsRecordsType: External of OpenShift's platforms): nodes do not
	// answer them.
	External bool `json:"external,omitempty"`
}

// Answered reports whether the nodes' DNS servers answer for a name of a VIP, or for the names
// below a domain.
func (s *ClusterConfigSpec) Answered(name string) bool {
	return !s.DNS.External || name != "api."+s.Domain && name != "api-int."+s.Domain && name != "apps."+s.Domain
}

// Peer is a node as the other nodes know it.
type Peer struct {
	Name string `json:"name"`
	// Unnamed is set where the node's name is unknown: Name only identifies it in logs and
	// configurations, and never becomes a DNS record.
	Unnamed bool `json:"unnamed,omitempty"`
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one.
	Role string `json:"role"`
	// Addresses are the node's addresses without VIPs.
	Addresses []netip.Addr `json:"addresses"`
	// Elsewhere are more addresses, in networks of VIPs that none of Addresses is in: for
	// adverts for those VIPs only.
	Elsewhere []netip.Addr `json:"elsewhere,omitempty"`
	// Labels are the node's labels, if known.
	Labels map[string]string `json:"labels,omitempty"`
}
