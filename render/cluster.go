package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/gitops"
	"github.com/vipgen/vipgen/render/installconfig"
)

// Cluster is a valid cluster: everything that its output is made of.
type Cluster struct {
	// Config is the ClusterConfig of every node.
	Config *v1alpha1.ClusterConfig
	// Version is the OpenShift version to write for; empty means any.
	Version string
	// OS is the operating system of the nodes: ignition.OpenShift and so on.
	OS string
	// Namespace is the namespace of the mirror pods; OwnNamespace is set where vipgen has to make it.
	Namespace    string
	OwnNamespace bool
	Images       v1alpha1.Images
	// Roles are the pools in the order of output: bootstrap (where vipgen renders it), master,
	// arbiter, worker, custom pools by name.
	Roles []string
	// ProfileReason is the reason for the cluster's profile of VRRP timings; empty where
	// spec.vrrp.profile chose it, and where nodes hold no VIPs.
	ProfileReason string
	// Replicas is the number of nodes of each pool in the install-config.
	Replicas map[string]int
	// AppsDomain is the suffix of routes without a host, where that is not apps.<cluster
	// domain>.
	AppsDomain string
	// ManifestRefs are the ConfigMaps with manifests that the cluster's object names; nil for
	// an install-config.
	ManifestRefs *gitops.ManifestRefs
	// DisruptionPolicy asks for the node disruption policy, Monitoring for alerts and a
	// dashboard.
	DisruptionPolicy, Monitoring bool
	// PodNetworks and ServiceNetworks are the cluster's internal networks.
	PodNetworks, ServiceNetworks []netip.Prefix
	// installerVIPs are the VIPs that the installer chooses.
	installerVIPs []netip.Addr
	// preview is set for OpenShift's own preview of VIPs by BGP.
	preview bool
	// needs is the input's part of Assumed.
	needs []string
}

// Given reports whether the input has the VIPs of a group: the installer chooses those that an
// install-config for OpenStack leaves out.
func (c *Cluster) Given(g *v1alpha1.Group) bool {
	return !slices.ContainsFunc(g.VIPs, func(a netip.Addr) bool { return slices.Contains(c.installerVIPs, a) })
}

// Migrates reports whether nodes start compatible with the operator's keepalived and migrate to
// other settings later.
func (c *Cluster) Migrates() bool { return c.Config.Spec.VRRP.Start != nil }

// OwnsBootstrap reports whether vipgen renders the bootstrap host: else OpenShift's own
// keepalived holds the API VIP there.
func (c *Cluster) OwnsBootstrap() bool { return slices.Contains(c.Roles, v1alpha1.RoleBootstrap) }

// ReplacesLoadBalancer reports whether an external load balancer replaces OpenShift's own,
// whose pods vipgen's files keep off the nodes. OpenShift's API still reports its own.
func (c *Cluster) ReplacesLoadBalancer() bool {
	return !c.OwnsBootstrap() && c.Config.Spec.LoadBalancer == v1alpha1.LoadBalancerExternal
}

// ReplacesKeepalived reports whether routers know the first API VIPs of a running cluster, and
// OpenShift's own keepalived would hold them while it is installed.
func (c *Cluster) ReplacesKeepalived() bool {
	return !c.OwnsBootstrap() && c.Config.Spec.Announce.Routed() && !c.preview
}

// Installable returns an error where the output fits a running cluster only.
func (c *Cluster) Installable() error {
	if c.ReplacesKeepalived() {
		return fmt.Errorf("spec.announce: %s is for a running cluster here: while it is installed, OpenShift's own keepalived holds the API VIP on the bootstrap host, where no router would find it. "+
			"Have platform.%s.loadBalancer.type: UserManaged in the install-config, or install with vrrp and move afterwards (docs/move-to-bgp.md)", c.Config.Spec.Announce, c.Config.Spec.Platform)
	}
	if !c.ReplacesLoadBalancer() {
		return nil
	}
	return fmt.Errorf("spec.loadBalancer.type: External is for a running cluster here: while it is installed, OpenShift's own keepalived holds the API VIP on the bootstrap host. "+
		"Have platform.%s.loadBalancer.type: UserManaged in the install-config, or install with InCluster and move to the external load balancer afterwards (docs/external-lb.md)", c.Config.Spec.Platform)
}

// BootstrapCompatible reports whether nodes interoperate with OpenShift's own keepalived on the
// bootstrap host, or need not.
func (c *Cluster) BootstrapCompatible() bool {
	return c.OwnsBootstrap() || c.Config.Spec.Announce.Routed() || c.Config.Spec.VRRP.LikeOpenShift()
}

// resolve merges the input of one cluster. The list holds every problem found; the cluster is
// nil when one of them is an error.
func resolve(in *Input, o Options) (*Cluster, problem.List) {
	r := &resolver{in: in, version: in.version(o)}
	r.collectVIPs()
	r.checkVersion(o)
	r.checkTopology()
	r.checkInstaller()
	r.checkVIPs()
	r.checkLoadBalancer()
	r.checkAnnounce()
	r.checkAppsDomain()
	c := &Cluster{
		Version:          r.version,
		AppsDomain:       r.appsDomain(),
		OS:               cmp.Or(o.OS, ignition.OpenShift),
		DisruptionPolicy: in.VIP.Spec.Manifests.NodeDisruptionPolicy,
		Monitoring:       in.VIP.Spec.Monitoring.Enabled,
		ManifestRefs:     in.Manifests,
		Config:           r.config(),
		preview:          in.Install.BGP != nil,
	}
	if c.Config.Spec.ByVRRP() && !in.givenProfile {
		c.ProfileReason = in.profileReason()
	}
	c.Namespace, c.OwnNamespace = namespace(in.Install.Platform)
	c.Images = images(in.VIP.Spec.Images, c.Version, o.Release)
	r.checkImages(c.Images)
	r.checkRelease(o.Release)
	for _, v := range slices.Concat(r.api, r.ingress) {
		if v.computed {
			c.installerVIPs = append(c.installerVIPs, v.Addr)
		}
	}
	c.needs = r.needs()
	c.Roles = r.roles()
	c.Replicas = r.replicas()
	c.PodNetworks, c.ServiceNetworks = installconfig.Prefixes(in.Install.ClusterNetworks), installconfig.Prefixes(in.Install.ServiceNetworks)
	r.list.Sort()
	if r.list.Err() != nil {
		return nil, r.list
	}
	return c, r.list
}

// resolver holds the input and the problems of one call of resolve.
type resolver struct {
	in   *Input
	list problem.List
	// OpenShift version; empty means any
	version string
	// addresses of groups with their sources
	api, ingress []place
	dns          *place
}

// PodNamespace returns the namespace of the mirror pods on a platform.
func PodNamespace(platform string) string {
	name, _ := namespace(platform)
	return name
}

// namespace returns the namespace of the mirror pods; own is set where OpenShift does not make
// it.
func namespace(platform string) (name string, own bool) {
	if p := assets.PlatformNamed(platform); p.HasVIPs() {
		return "openshift-" + p.Namespace + "-infra", false
	}
	return "openshift-vipgen-infra", true
}

func (r *resolver) config() *v1alpha1.ClusterConfig {
	install, vip := r.in.Install, &r.in.VIP.Spec
	c := &v1alpha1.ClusterConfig{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.KindClusterConfig,
		Metadata:   v1alpha1.ClusterMetadata{Name: install.Name},
		Spec: v1alpha1.ClusterConfigSpec{
			Domain:       install.Name + "." + install.BaseDomain,
			Platform:     install.Platform,
			Topology:     r.topology(),
			ControlPlane: v1alpha1.ControlPlane{Replicas: install.ControlPlane.Replicas, Schedulable: r.schedulable()},
			LoadBalancer: vip.LoadBalancer.Type,
			APIServer:    vip.APIServer,
			DNS:          v1alpha1.ClusterDNS{Upstreams: vip.DNS.Upstreams, Records: vip.DNS.Records, External: install.ExternalDNS},
			Ports:        vip.Ports,
		},
	}
	if vip.Monitoring.Address == v1alpha1.MetricsOnNode {
		c.Spec.Metrics = v1alpha1.MetricsOnNode // the default changes no file
	}
	c.Spec.Groups = lists.Map(r.groups(c.Spec.Domain), func(g groupPlan) v1alpha1.Group { return g.Group })
	if vip.Announce.Routed() {
		c.Spec.Announce = vip.Announce
	}
	if c.Spec.Routed() {
		c.Spec.BGP = vip.BGP
	} else {
		c.Spec.Ports.BGPMonitor = 0
	}
	if c.Spec.ByVRRP() {
		c.Spec.VRRP = r.vrrp()
	}
	c.Spec.MachineNetworks = r.machineNetworks(c.Spec.Groups)
	c.Spec.Peers = r.peers(&c.Spec)
	if why := c.Spec.VRRP.Target.IPv6Interval(c.Spec.Elected().Groups); why != "" {
		r.errorAt(r.in.vipDocs, problem.BadTiming, "spec.vrrp.advertInterval", vip.VRRP.AdvertInterval.String(), why)
	}
	return c
}

func (r *resolver) topology() v1alpha1.Topology {
	switch {
	case r.in.Install.Arbiter != nil:
		return v1alpha1.TopologyHighlyAvailableArbiter
	case r.in.Install.ControlPlane.Replicas == 1:
		return v1alpha1.TopologySingleReplica
	case r.in.Install.ControlPlane.Replicas == 2:
		return v1alpha1.TopologyDualReplica
	default:
		return v1alpha1.TopologyHighlyAvailable
	}
}

// schedulable reports whether control-plane nodes take workloads: without compute nodes they
// run the routers, as OpenShift decides.
func (r *resolver) schedulable() bool {
	return !slices.ContainsFunc(r.in.Install.Compute, func(p installconfig.Pool) bool { return p.Replicas > 0 })
}

// vrrp returns the cluster's VRRP settings, and those that it starts with (hard case 23).
func (r *resolver) vrrp() v1alpha1.ClusterVRRP {
	v := v1alpha1.ClusterVRRP{Target: r.in.VIP.Spec.VRRP.Settings()}
	if start := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast); r.interoperable() && start != v.Target {
		v.Start = &start
	}
	return v
}

func (r *resolver) interoperable() bool {
	if want := r.in.VIP.Spec.VRRP.Interoperable; want != nil {
		return *want
	}
	return r.operatorsKeepalived()
}

// besideOperators reports whether nodes start next to a keepalived of OpenShift's own, and so
// with its virtual router ID.
func (r *resolver) besideOperators() bool { return r.operatorsKeepalived() && r.interoperable() }

// operatorsKeepalived reports whether OpenShift runs its own keepalived.
func (r *resolver) operatorsKeepalived() bool {
	return assets.PlatformNamed(r.in.Install.Platform).HasVIPs() && r.in.Install.LoadBalancer != "UserManaged"
}

// hosts returns the hosts of the install-config and of the agent-config.
func (r *resolver) hosts() []installconfig.Host {
	if r.in.Agent == nil {
		return r.in.Install.Hosts
	}
	return slices.Concat(r.in.Install.Hosts, r.in.Agent.Hosts)
}

// peers returns the nodes whose addresses the input has.
func (r *resolver) peers(spec *v1alpha1.ClusterConfigSpec) []v1alpha1.Peer {
	hosts := r.hosts()
	usual := v1alpha1.RoleWorker // role of a host that the input leaves to the installer
	if r.schedulable() {
		usual = v1alpha1.RoleMaster
	}
	var out []v1alpha1.Peer
	seen := map[string]bool{}
	for i, h := range hosts {
		p := v1alpha1.Peer{Name: h.Name, Role: cmp.Or(h.Role, usual), Addresses: inNodeNetworks(spec, h.Addresses)}
		switch {
		case p.Role == v1alpha1.RoleBootstrap:
			p.Name = v1alpha1.RoleBootstrap
		case p.Name == "": // the installer chooses the name; the Node watch finds it
			p.Name, p.Unnamed = unused(fmt.Sprintf("host-%d", i+1), hosts), true
		}
		if len(p.Addresses) > 0 && !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, p)
		}
	}
	if a := r.bootstrapAddress(); a != nil && !seen[v1alpha1.RoleBootstrap] {
		out = append(out, v1alpha1.Peer{Name: v1alpha1.RoleBootstrap, Role: v1alpha1.RoleBootstrap, Addresses: addressesOfHost(a.Addr, out)})
	}
	slices.SortFunc(out, func(a, b v1alpha1.Peer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// addressesOfHost returns the addresses of the host with that address, which comes first. The
// rendezvous host of agent-based installations has those of the node that it becomes, in both
// families.
func addressesOfHost(a netip.Addr, hosts []v1alpha1.Peer) []netip.Addr {
	out := []netip.Addr{a}
	for _, h := range hosts {
		if !slices.Contains(h.Addresses, a) {
			continue
		}
		out = append(out, lists.Filter(h.Addresses, func(more netip.Addr) bool { return more != a })...)
	}
	return out
}

// unused returns a name that no host has.
func unused(name string, hosts []installconfig.Host) string {
	for slices.ContainsFunc(hosts, func(h installconfig.Host) bool { return h.Name == name }) {
		name += "-unnamed"
	}
	return name
}

func (r *resolver) bootstrapAddress() *installconfig.Address {
	if r.in.Agent != nil && r.in.Agent.RendezvousIP != nil {
		return r.in.Agent.RendezvousIP
	}
	return r.in.Install.BootstrapIP
}

// roles returns the pools that get files.
func (r *resolver) roles() []string {
	var roles []string
	if !r.operatorsKeepalived() {
		roles = append(roles, v1alpha1.RoleBootstrap)
	}
	roles = append(roles, v1alpha1.RoleMaster)
	if r.in.Install.Arbiter != nil {
		roles = append(roles, v1alpha1.RoleArbiter)
	}
	roles = append(roles, v1alpha1.RoleWorker)
	custom := lists.Map(r.in.Install.Compute, func(p installconfig.Pool) string { return p.Name })
	custom = append(custom, lists.Map(r.in.VIP.Spec.Pools, func(p v1alpha1.Pool) string { return p.Name })...)
	slices.Sort(custom)
	return append(roles, lists.Filter(slices.Compact(custom), func(name string) bool { return name != v1alpha1.RoleWorker })...)
}

func (r *resolver) replicas() map[string]int {
	out := map[string]int{v1alpha1.RoleMaster: r.in.Install.ControlPlane.Replicas}
	if r.in.Install.Arbiter != nil {
		out[v1alpha1.RoleArbiter] = r.in.Install.Arbiter.Replicas
	}
	for _, p := range r.in.Install.Compute {
		out[p.Name] += p.Replicas
	}
	return out
}
