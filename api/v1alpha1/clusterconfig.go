package v1alpha1

import (
	"net/netip"
	"strings"
)

// ClusterConfig is every fact about a cluster that its nodes need, once, in
// one file: /etc/kubernetes/static-pod-resources/vipgen/cluster.yaml. It is
// the same for every node of the cluster. vipgen writes it, vipgen-agent reads
// it; users read it, and change VIPConfig or install-config.yaml instead.
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

// ClusterConfigSpec is what nodes need to know.
type ClusterConfigSpec struct {
	// Domain is "<name>.<base domain>".
	Domain string `json:"domain"`
	// Platform is the install-config's platform key, such as "baremetal".
	Platform string `json:"platform"`
	// Topology is that of the control plane.
	Topology Topology `json:"topology"`
	// ControlPlane describes the control-plane nodes.
	ControlPlane ControlPlane `json:"controlPlane"`
	// LoadBalancer says whether the nodes hold the VIPs.
	LoadBalancer LoadBalancerType `json:"loadBalancer"`
	// APIServer says how nodes reach the API themselves.
	APIServer APIServer `json:"apiServer,omitzero"`
	// MachineNetworks are the networks of the nodes as the install-config has them,
	// primary family first. They do not say where nodes are if they lack VIPs: ask
	// NodeNetworks.
	MachineNetworks []netip.Prefix `json:"machineNetworks"`
	// VRRP is the VRRP settings; empty where the load balancer is external.
	VRRP ClusterVRRP `json:"vrrp,omitzero"`
	// Groups are the sets of VIPs that move together, each a VRRP instance per
	// address family.
	Groups []Group `json:"groups"`
	// Peers are nodes whose addresses were known when this was rendered; the
	// Node watch adds to them and corrects them.
	Peers []Peer `json:"peers,omitempty"`
	// DNS is what the DNS server on every node answers.
	DNS ClusterDNS `json:"dns"`
	// Ports are those of the services on every node; none is 0.
	Ports Ports `json:"ports"`
	// Metrics says where the agents' metrics can be read; empty means on loopback.
	Metrics MetricsAddress `json:"metrics,omitempty"`
}

// OperatorHasVIPs reports whether the platform is one on which the operator knows VIPs, and
// its node-ip looks for their network (machine-config-operator, templates/common/on-prem).
func (s *ClusterConfigSpec) OperatorHasVIPs() bool {
	return s.Platform != "none" && s.Platform != "external"
}

// LocalAPI says whether the own connections of a node of that role to an API VIP go to its
// HAProxy, wherever the VIP is.
func (s *ClusterConfigSpec) LocalAPI(role string) bool {
	return s.APIServer.Local != LocalAPINone && s.RunsHAProxy(role)
}

// RunsHAProxy says whether nodes of a role run HAProxy.
func (s *ClusterConfigSpec) RunsHAProxy(role string) bool {
	return s.LoadBalancer == LoadBalancerInCluster && role != RoleBootstrap &&
		(ControlPlaneRole(role) || s.APIServer.Local == LocalAPIAllNodes)
}

// ControlPlaneRole says whether nodes of a role are of the control plane: everybody's
// connections to the API VIPs come to their HAProxy, to that of other nodes their own alone.
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
	// Replicas is how many there are to be.
	Replicas int `json:"replicas"`
	// Schedulable says whether they run workloads, and so routers.
	Schedulable bool `json:"schedulable,omitempty"`
}

// ClusterVRRP is the VRRP settings.
type ClusterVRRP struct {
	// Target is what the cluster is to run.
	Target VRRPSettings `json:"target"`
	// Start is what nodes run until the coordinated switch to Target, so that
	// they understand the operator's own keepalived on the bootstrap host (hard
	// case 23). Absent where Target holds from the first packet.
	Start *VRRPSettings `json:"start,omitempty"`
}

// Initial returns the settings that a node runs when nothing else says which.
func (v ClusterVRRP) Initial() VRRPSettings {
	if v.Start != nil {
		return *v.Start
	}
	return v.Target
}

// LikeOpenShift says whether nodes start in the settings of OpenShift's own keepalived,
// which may run on the bootstrap host then, and on nodes that vipgen's files have not
// reached yet.
func (v ClusterVRRP) LikeOpenShift() bool { return v.Initial() == ClassicSettings(ModeUnicast) }

// VRRPSettings is a way of running VRRP. Nodes that differ in it do not
// understand each other.
type VRRPSettings struct {
	Profile Profile `json:"profile"`
	Mode    Mode    `json:"mode"`
	// Version of VRRP for IPv4; IPv6 is always 3.
	Version int `json:"version"`
	// AdvertIntervalMS is the time between adverts in milliseconds.
	AdvertIntervalMS int `json:"advertIntervalMS"`
}

// LikeOperator reports whether the settings are those of the operator's own keepalived, which
// may run on other nodes then. Nodes send adverts as it does, from where it does
// (Node.BindAsListed), until they move to other settings together.
func (v VRRPSettings) LikeOperator() bool { return v == ClassicSettings(v.Mode) }

// GroupRole says what is behind the VIPs of a group.
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
	// VIPs holds one or two addresses, primary family first.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Instance is the name of the VRRP instances, to which the agent adds
	// nothing but the number of the address: "<cluster>_API". Like what follows
	// up to Together, it is empty where the load balancer is external.
	Instance string `json:"instance,omitempty"`
	// VirtualRouterID is 1 to 255, for both families.
	VirtualRouterID int `json:"virtualRouterID,omitempty"`
	// Password is the PASS word of VRRPv2, in clear text in every
	// advert: it gives no security, but the operator's own keepalived has it.
	Password string `json:"password,omitempty"`
	// Together says that the VIPs of both families must be on one node, because
	// they share a Neutron port (hard case 14).
	Together bool `json:"together,omitempty"`
	// Names are exact names that resolve to an API group's VIPs. Those of the first
	// API group, api and api-int in the cluster's domain, are not listed.
	Names []string `json:"names,omitempty"`
	// Domains are those whose every name resolves to an ingress group's VIPs.
	Domains []string `json:"domains,omitempty"`
	// Controller is the name of the IngressController of an ingress group.
	Controller string `json:"controller,omitempty"`
	// NodeSelector is what a node's labels must hold for it to take part in an
	// ingress group.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// HealthPort is that of the router of an ingress group.
	HealthPort int `json:"healthPort,omitempty"`
}

// FirstAPI is the name of the group of the API VIPs that every cluster has.
const FirstAPI = "api"

// AdditionalAPI says whether the group has API VIPs beside the first ones: for
// clients, who are none before the cluster runs. So the bootstrap host never holds
// them, and nobody gets machine configs at them.
func (g *Group) AdditionalAPI() bool {
	return g.Role == GroupAPI && strings.HasPrefix(g.Name, FirstAPI+"-")
}

// OfOperator reports whether the operator's own keepalived elects a holder of the group's
// VIPs as well. It has one group of each role; vipgen's further ones are called
// "<role>-<name>".
func (g *Group) OfOperator() bool { return !strings.Contains(g.Name, "-") }

// APINames are the exact names that resolve to the VIPs of an API group.
func (s *ClusterConfigSpec) APINames(g *Group) []string {
	if g.AdditionalAPI() {
		return g.Names
	}
	return append([]string{"api." + s.Domain, "api-int." + s.Domain}, g.Names...)
}

// ClusterDNS is what the DNS server on every node answers besides the VIPs.
type ClusterDNS struct {
	// Upstreams replace those that the node's network brings.
	Upstreams []netip.Addr `json:"upstreams,omitempty"`
	Records   []DNSRecord  `json:"records,omitempty"`
	// External says that somebody else's name server has the records of the API
	// and of the default ingress controller (dnsRecordsType: External of OpenShift's
	// platforms): nodes do not answer them.
	External bool `json:"external,omitempty"`
}

// Answered says whether the nodes' DNS servers answer for a name of a VIP, or for
// the names below a domain.
func (s *ClusterConfigSpec) Answered(name string) bool {
	return !s.DNS.External || name != "api."+s.Domain && name != "api-int."+s.Domain && name != "apps."+s.Domain
}

// Peer is a node as its fellows see it.
type Peer struct {
	Name string `json:"name"`
	// Unnamed says that nobody knows what the node is called: Name only tells it from
	// others in logs and configurations, and never becomes a DNS record.
	Unnamed bool `json:"unnamed,omitempty"`
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one.
	Role string `json:"role"`
	// Addresses are all that the node is reached at, never a VIP.
	Addresses []netip.Addr `json:"addresses"`
	// Elsewhere are more of them, in networks of VIPs where none of Addresses is:
	// adverts for those VIPs go there, and nothing else.
	Elsewhere []netip.Addr `json:"elsewhere,omitempty"`
	// Labels are the node's, where they are known.
	Labels map[string]string `json:"labels,omitempty"`
}
