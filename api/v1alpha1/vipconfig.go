package v1alpha1

import (
	"fmt"
	"net/netip"
	"time"
)

// VIPConfig is everything about a cluster's VIPs that install-config.yaml has
// no field for. Every field is optional, and so is the file.
type VIPConfig struct {
	// Always "vipgen.io/v1alpha1".
	APIVersion string `json:"apiVersion"`
	// Always "VIPConfig".
	Kind string `json:"kind"`
	// The name of the configuration, to tell several apart.
	Metadata VIPConfigMetadata `json:"metadata,omitzero"`
	// The desired settings.
	Spec VIPConfigSpec `json:"spec,omitzero"`
}

// VIPConfigMetadata names a VIPConfig.
type VIPConfigMetadata struct {
	// Free to choose; nothing is derived from it.
	Name string `json:"name,omitempty"`
}

// VIPConfigSpec holds the desired settings.
type VIPConfigSpec struct {
	// The OpenShift minor version that the cluster runs, "4.12" to "5.2". It
	// decides the Ignition version of the output. Without it the output is
	// written so that all of these versions can read it.
	OpenShiftVersion string `json:"openshiftVersion,omitempty"`

	// Name of the layer-2 network that the nodes are on. Clusters that name one
	// share it with those of the same name alone; without it, clusters whose
	// machine networks overlap count as sharing one. Only 'vipgen vr-ids' asks.
	Network string `json:"network,omitempty"`

	// The API VIPs, one per address family. Only for platforms whose
	// install-config has no field for them (none, external).
	APIVIPs []netip.Addr `json:"apiVIPs,omitempty"`
	// The VIPs of the default ingress controller, one per address family. Only
	// for platforms whose install-config has no field for them.
	IngressVIPs []netip.Addr `json:"ingressVIPs,omitempty"`
	// More VIPs of the API, besides the first ones: for clients of another network, or during a
	// change of VIPs.
	AdditionalAPIVIPs []AdditionalAPI `json:"additionalAPIVIPs,omitempty"`

	// The load balancer in front of the API and the routers.
	LoadBalancer LoadBalancer `json:"loadBalancer,omitzero"`
	// How nodes reach the API themselves.
	APIServer APIServer `json:"apiServer,omitzero"`
	// How the network finds the VIPs. "vrrp" (the default): keepalived elects a holder on
	// their subnet. "bgp": every node that serves announces them to its routers, which spread
	// the connections; nodes may be in several subnets, and the VIPs are in none of them.
	// "table": nodes keep the host routes of VIPs that they serve in routing table 198, for a
	// BGP speaker that they have already. Sets of additionalAPIVIPs and entries of ingress can
	// have another value.
	Announce Announce `json:"announce,omitempty"`
	// The routers, with announce: bgp.
	BGP BGP `json:"bgp,omitzero"`
	// How the nodes elect the holder of a VIP, with announce: vrrp.
	VRRP VRRP `json:"vrrp,omitzero"`
	// Ports on the nodes, where a cluster needs other ones than usual.
	Ports Ports `json:"ports,omitzero"`
	// Container images, where the defaults do not fit.
	Images Images `json:"images,omitzero"`
	// The cluster's own DNS server on every node.
	DNS DNS `json:"dns,omitzero"`
	// Domain of routes that name no host, as spec.appsDomain of the cluster's Ingress
	// object has it. Every name below it resolves to the VIPs of the ingress
	// controller that lists it, else of the default one.
	AppsDomain string `json:"appsDomain,omitempty"`
	// Ingress controllers. The one called "default" can be changed here;
	// others are added to it.
	Ingress []Ingress `json:"ingress,omitempty"`
	// Custom machine config pools, besides master, worker and arbiter.
	Pools []Pool `json:"pools,omitempty"`
	// Optional cluster manifests.
	Manifests Manifests `json:"manifests,omitzero"`
	// Metrics, alerts and a dashboard.
	Monitoring Monitoring `json:"monitoring,omitzero"`
}

// AdditionalAPI is a set of VIPs at which clients reach the API too.
type AdditionalAPI struct {
	// The unique name of the set, such as "mgmt", at most 59 characters: its VRRP
	// group is "api-<name>".
	Name string `json:"name"`
	// One VIP per address family, with announce: vrrp in a network of the nodes.
	VIPs []netip.Addr `json:"vips"`
	// Names that resolve to the VIPs, such as "api-mgmt.example.com". By default
	// "api-<name>.<cluster domain>". The API server's certificate covers none of
	// them by itself; 'vipgen explain' prints the object that adds them.
	Names []string `json:"names,omitempty"`
	// Virtual router ID, 1 to 255; derived from the names when 0.
	VirtualRouterID int `json:"virtualRouterID,omitempty"`
	// How the network finds these VIPs, where that is not spec.announce.
	Announce Announce `json:"announce,omitempty"`
}

// LoadBalancerType is the place of VIPs and load balancing.
type LoadBalancerType string

const (
	// LoadBalancerInCluster: the nodes hold the VIPs themselves. The default.
	LoadBalancerInCluster LoadBalancerType = "InCluster"
	// LoadBalancerExternal: something outside holds them; nodes get DNS only.
	LoadBalancerExternal LoadBalancerType = "External"
	// LoadBalancerNone: the cluster has no VIPs.
	LoadBalancerNone LoadBalancerType = "None"
)

// LoadBalancer selects the load balancer.
type LoadBalancer struct {
	// "InCluster" (the default): keepalived and HAProxy on the nodes.
	// "External": something outside the cluster; nodes get DNS and mDNS only.
	// "None": there are no VIPs; nodes get DNS only. On a single control-plane node
	// the names of the API and of routes are the node's own address.
	Type LoadBalancerType `json:"type,omitempty"`
}

// LocalAPI selects the nodes whose programs reach the API by way of the node's own HAProxy.
type LocalAPI string

const (
	// LocalAPIControlPlane: on the nodes that run HAProxy anyway. The default.
	LocalAPIControlPlane LocalAPI = "ControlPlane"
	// LocalAPIAllNodes: on every node; compute nodes run HAProxy for it.
	LocalAPIAllNodes LocalAPI = "AllNodes"
	// LocalAPINone: everywhere by way of the holder of the VIP.
	LocalAPINone LocalAPI = "None"
)

// APIServer configures the path of the nodes' own connections to the API.
type APIServer struct {
	// On which nodes kubelet and other programs of the host network that connect to an
	// API VIP get the node's own HAProxy, so that they do not depend on the VIP's holder.
	// "ControlPlane" (the default): on those that run HAProxy. "AllNodes": on compute
	// nodes too, which run one for themselves. "None": on no node.
	Local LocalAPI `json:"local,omitempty"`
}

// Profile names a set of VRRP timings.
type Profile string

const (
	// ProfileClassic is VRRPv2 with adverts of 1 s, as OpenShift's own.
	ProfileClassic Profile = "classic"
	// ProfileFast is VRRPv3 with an advert every FastIntervalMS. The default where
	// DefaultProfile gives no other.
	ProfileFast Profile = "fast"
	// ProfileVirtual is VRRPv3 with an advert every VirtualIntervalMS, for nodes that
	// a hypervisor may stop for a while.
	ProfileVirtual Profile = "virtual"
	// ProfileCustom takes version and interval from the VIPConfig.
	ProfileCustom Profile = "custom"
)

// Mode is the transport of adverts.
type Mode string

const (
	// ModeUnicast sends adverts to every peer by its address. The default.
	ModeUnicast Mode = "unicast"
	// ModeMulticast sends them to 224.0.0.18 and ff02::12.
	ModeMulticast Mode = "multicast"
)

// VRRP configures the election of a VIP's holder.
type VRRP struct {
	// "fast" (VRRPv3, an advertisement every 40 ms), "virtual" (VRRPv3, every 200 ms, so
	// that a virtual machine that is paused for half a second keeps its VIPs),
	// "classic" (VRRPv2, every second, as OpenShift's own keepalived) or "custom".
	// By default "virtual" on platforms vsphere, openstack, nutanix and ovirt, whose
	// nodes are virtual machines, and "fast" on all others.
	Profile Profile `json:"profile,omitempty"`
	// "unicast" (the default) or "multicast".
	Mode Mode `json:"mode,omitempty"`
	// VRRP version, 2 or 3; with profile custom only. IPv6 is always 3.
	Version int `json:"version,omitempty"`
	// Time between advertisements, such as "50ms"; with profile custom only. VRRPv3
	// carries 10ms to 40.95s in steps of 10ms (RFC 9568 section 5.2.7), VRRPv2
	// 1s to 255s in whole seconds (RFC 3768 section 5.3.7).
	AdvertInterval Duration `json:"advertInterval,omitzero"`
	// Start in the mode of OpenShift's own keepalived, which holds the API VIP
	// on the bootstrap host, and migrate to the profile when every node is ready.
	// By default true exactly where that keepalived runs: on platforms with VIPs
	// in the install-config whose loadBalancer.type is not UserManaged.
	Interoperable *bool `json:"interoperable,omitempty"`
	// Virtual router IDs, 1 to 255, where the ones derived from the cluster's
	// name are taken on the network.
	VirtualRouterIDs VirtualRouterIDs `json:"virtualRouterIDs,omitzero"`
	// Virtual router IDs that others on the network have, such as routers and
	// ipfailover. No group of the cluster may have one of them.
	ReservedRouterIDs []int `json:"reservedRouterIDs,omitempty"`
}

// VirtualRouterIDs overrides the derived IDs; 0 means derived.
type VirtualRouterIDs struct {
	// Of the API VIPs.
	API int `json:"api,omitempty"`
	// Of the default ingress controller's VIPs.
	Ingress int `json:"ingress,omitempty"`
	// Of the DNS VIP that clusters of OpenShift 4.2 to 4.4 have.
	DNS int `json:"dns,omitempty"`
}

// Ports on every node. 0 means the usual one.
type Ports struct {
	// Kubernetes API server. 6443.
	API int `json:"api,omitempty"`
	// Machine config server. 22623.
	MachineConfig int `json:"machineConfig,omitempty"`
	// HAProxy in front of the API servers. 9445.
	HAProxy int `json:"haproxy,omitempty"`
	// HAProxy's readiness, on loopback. 9444.
	HAProxyReady int `json:"haproxyReady,omitempty"`
	// Health and metrics of the agent beside HAProxy, on loopback. 9454.
	HAProxyMonitor int `json:"haproxyMonitor,omitempty"`
	// Health and metrics of the agent beside keepalived, on loopback. 9455.
	KeepalivedMonitor int `json:"keepalivedMonitor,omitempty"`
	// Health and metrics of the firewall agent, on loopback. 9456.
	FirewallMonitor int `json:"firewallMonitor,omitempty"`
	// Health and metrics of the agent beside CoreDNS, on loopback. 9457.
	CoreDNSMonitor int `json:"corednsMonitor,omitempty"`
	// Health and metrics of the mDNS publisher, on loopback. 9458.
	MDNSMonitor int `json:"mdnsMonitor,omitempty"`
	// Health and metrics of the agent that announces VIPs by BGP, on loopback. 9461.
	BGPMonitor int `json:"bgpMonitor,omitempty"`
	// CoreDNS' own health, on loopback. 18080.
	CoreDNSHealth int `json:"corednsHealth,omitempty"`
	// Health of the default ingress controller's router. 1936.
	RouterHealth int `json:"routerHealth,omitempty"`
	// Provisioning service on the bootstrap host. 6385.
	Ironic int `json:"ironic,omitempty"`
}

// Images overrides the default images; empty means the default.
type Images struct {
	// Holds vipgen-agent.
	Agent string `json:"agent,omitempty"`
	// Holds keepalived.
	Keepalived string `json:"keepalived,omitempty"`
	// Holds HAProxy.
	HAProxy string `json:"haproxy,omitempty"`
	// Holds CoreDNS.
	CoreDNS string `json:"coredns,omitempty"`
	// OpenShift release that keepalived, haproxy and coredns are taken from, such as
	// "4.18.3". Another one than openshiftVersion is a warning.
	Release string `json:"release,omitempty"`
}

// DNS sets up the cluster's own DNS server.
type DNS struct {
	// Servers to forward other names to, instead of those that the node's
	// network brings. At most 15.
	Upstreams []netip.Addr `json:"upstreams,omitempty"`
	// More names to answer for.
	Records []DNSRecord `json:"records,omitempty"`
}

// DNSRecord is a name with its addresses.
type DNSRecord struct {
	// A full name such as "registry.example.com", or "*.apps2.example.com" for
	// every name below it.
	Name string `json:"name"`
	// IPv4 and IPv6 addresses.
	Addresses []netip.Addr `json:"addresses"`
}

// DefaultIngress is the name of OpenShift's default ingress controller.
const DefaultIngress = "default"

// Ingress is an ingress controller with its VIPs.
type Ingress struct {
	// The IngressController's name, "default" for the cluster's own; with controller, any
	// other name.
	Name string `json:"name"`
	// The IngressController whose routers serve the VIPs, where that is not the name: "default"
	// for more VIPs of the cluster's own, such as an old address while DNS changes.
	Controller string `json:"controller,omitempty"`
	// Its VIPs, one per address family. Not for "default", whose VIPs come from
	// the install-config or from ingressVIPs.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Domains whose every name resolves to the VIPs. For "default" these come
	// besides apps.<cluster domain>.
	Domains []string `json:"domains,omitempty"`
	// Labels of the nodes that can run its routers. By default the compute
	// nodes, and control-plane nodes that are schedulable.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Port of its router's health check on those nodes. 1936.
	HealthPort int `json:"healthPort,omitempty"`
	// Virtual router ID, 1 to 255; derived from the names when 0. Not for
	// "default", whose ID stands in vrrp.virtualRouterIDs.
	VirtualRouterID int `json:"virtualRouterID,omitempty"`
	// How the network finds the VIPs, where that is not spec.announce.
	Announce Announce `json:"announce,omitempty"`
}

// Pool is a custom machine config pool. Its nodes are compute nodes.
type Pool struct {
	// The MachineConfigPool's name, such as "infra".
	Name string `json:"name"`
}

// Manifests switches optional cluster manifests on.
type Manifests struct {
	// Emit a MachineConfiguration with a node disruption policy, so that the
	// operator neither drains nor reboots nodes for a change of vipgen's files.
	// Needs OpenShift 4.17. It is the cluster's only MachineConfiguration: merge
	// it by hand where the cluster has settings of its own there.
	NodeDisruptionPolicy bool `json:"nodeDisruptionPolicy,omitempty"`
}

// MetricsAddress selects the addresses of a node that serve its agents' metrics.
type MetricsAddress string

const (
	// MetricsOnLoopback: for programs of the node alone. The default.
	MetricsOnLoopback MetricsAddress = "Loopback"
	// MetricsOnNode: at the node's own addresses too.
	MetricsOnNode MetricsAddress = "Node"
)

// Monitoring configures metrics, alerts and a dashboard for Prometheus and Grafana.
type Monitoring struct {
	// Emit alerts (PrometheusRule) and a dashboard for OpenShift's console and
	// Grafana; with address "Node" also a PodMonitor, by which OpenShift's
	// Prometheus reads the metrics.
	Enabled bool `json:"enabled,omitempty"`
	// Where the agents' metrics can be read. "Loopback" (the default): on the node
	// itself alone. "Node": also at the node's own addresses, by every host that
	// reaches them: in clear, without a password, and nothing but /metrics.
	Address MetricsAddress `json:"address,omitempty"`
}

// Duration is a length of time that reads and writes as Go's "100ms".
type Duration time.Duration

// UnmarshalText parses "100ms", "1s" and so on.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("a duration such as 100ms or 1s")
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the form that UnmarshalText parses.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns a form such as "100ms".
func (d Duration) String() string { return time.Duration(d).String() }

// Millis returns n milliseconds as a duration.
func Millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// Milliseconds returns the whole milliseconds.
func (d Duration) Milliseconds() int { return int(time.Duration(d).Milliseconds()) }
