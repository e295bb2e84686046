package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
)

// rule is a check of OpenShift's installer that depends on the release, or on more than one
// field.
type rule struct {
	code problem.Code
	// since is the first release with the rule, or empty. Without a release, the latest rules
	// apply.
	since string
	check func(*resolver) []finding
	// forNew is set where a running cluster may violate the rule: an earlier release accepted
	// it, or it came after the installation. It is a warning where the cluster is installed.
	forNew bool
}

// finding is one rule's objection to a field of the install-config. A warning has severity.
type finding struct {
	field, found, expected, hint string
	severity                     problem.Severity
}

// installersRules name the installer's functions, most of them in its
// pkg/types/validation/installconfig.go.
var installersRules = []rule{
	{problem.BadName, "", (*resolver).nameOfOneLabel, true},                // pkg/validate: OnPremClusterName
	{problem.FamilyOrder, "", (*resolver).networkFamilies, true},           // validateNetworkingIPVersion
	{problem.FamilyOrder, "", (*resolver).ipv6First, true},                 // validateNetworkEntryOrder
	{problem.FamilyOrder, "4.20", (*resolver).primaryFamily, true},         // validateAPIAndIngressVIPs
	{problem.NeedsVersion, "4.15", (*resolver).removedNetworkTypes, false}, // validateNetworking
	{problem.NetworksOverlap, "4.19", (*resolver).ovnNetworks, true},       // validateNetworkNotOverlapDefaultOVNSubnets
	{problem.BadValue, "4.19", (*resolver).oneHostPrefix, true},            // validateClusterNetwork
	{problem.Topology, "", (*resolver).twoNodePlatforms, false},            // validateArbiter, validateFencingForPlatform
	{problem.Topology, "", (*resolver).fencingCredentials, false},          // validateCredentialsNumber
	{problem.Topology, "", (*resolver).inPlace, false},                     // ValidateInstallConfig
	{problem.Topology, "", (*resolver).agentTopology, false},               // pkg/asset/agent: validateSNOConfiguration, validateControlPlaneConfiguration
	{problem.ConflictingFields, "", (*resolver).agentPlatform, false},      // pkg/asset/agent: ValidateSupportedPlatforms
	{problem.NeedsVersion, "", (*resolver).gatedFeatures, false},           // validateGatedFeatures
	{problem.UnknownField, "", (*resolver).newerFields, false},             // pkg/asset/installconfig: LoadFromFile
}

// checkInstaller reports everything that OpenShift's installer refuses.
func (r *resolver) checkInstaller() {
	for _, rule := range installersRules {
		if r.version != "" && rule.since != "" && !assets.AtLeast(r.version, rule.since) {
			continue
		}
		for _, f := range rule.check(r) {
			if rule.forNew && r.installed() {
				f.severity, f.hint = problem.Warning, "no new cluster can have it"
			}
			r.report(cmp.Or(f.severity, problem.Error), layer(r.in.Install.Doc),
				problem.Problem{Code: rule.code, Field: f.field, Found: f.found, Expected: f.expected, Hint: f.hint})
		}
	}
}

// installed reports whether the cluster is known to run, without its bootstrap host.
func (r *resolver) installed() bool {
	want := r.in.VIP.Spec.VRRP.Interoperable
	return want != nil && !*want
}

func (r *resolver) nameOfOneLabel() []finding {
	i := r.in.Install
	if !strings.Contains(i.Name, ".") || !slices.Contains([]string{"baremetal", "vsphere", "openstack", "nutanix"}, i.Platform) {
		return nil
	}
	return []finding{{field: "metadata.name", found: problem.Quote(i.Name), expected: "one label, without a period, as OpenShift's installer wants on platform " + i.Platform,
		hint: "for a cluster that was installed with it before 4.11: spec.vrrp.interoperable: false in vipgen.yaml, as its bootstrap host is gone"}}
}

// networkLists maps fields to their networks, with the installer's defaults also where IPv4 is
// not used. Objects without machine networks have the other two alone.
func (r *resolver) networkLists() map[string][]netip.Prefix {
	i := r.in.Install
	out := map[string][]netip.Prefix{}
	for field, list := range map[string][]installconfig.Network{"machineNetwork": i.MachineNetworks, "clusterNetwork": i.ClusterNetworks, "serviceNetwork": i.ServiceNetworks} {
		switch {
		case len(list) > 0:
			out["networking."+field] = installconfig.Prefixes(list)
		case field != "machineNetwork":
			out["networking."+field] = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")} // the other family's default
		}
	}
	return out
}

func familiesOf(list []netip.Prefix) string {
	return familyNames(lists.Map(list, netip.Prefix.Addr))
}

const bothFamilies = "IPv4 and IPv6"

// dualStack reports whether services have both families, which is the installer's criterion.
func (r *resolver) dualStack() bool {
	return familiesOf(r.networkLists()["networking.serviceNetwork"]) == bothFamilies
}

func (r *resolver) networkFamilies() (out []finding) {
	all := r.networkLists()
	services := all["networking.serviceNetwork"]
	switch {
	case r.dualStack() && len(services) != 2:
		out = append(out, finding{field: "networking.serviceNetwork", found: fmt.Sprintf("%d networks", len(services)), expected: "one IPv4 and one IPv6 network"})
	case !r.dualStack() && len(services) > 1 && services[0].Addr().Is4():
		out = append(out, finding{field: "networking.serviceNetwork", found: fmt.Sprintf("%d networks", len(services)), expected: "one network, or one of each family"})
	}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if f := familiesOf(all[field]); r.dualStack() && f != bothFamilies {
			out = append(out, finding{field: field, found: f + " alone", expected: bothFamilies + ", as in networking.serviceNetwork"})
		}
	}
	return out
}

// primaryIPv6 maps the platforms on which IPv6 may come first to their first releases.
var primaryIPv6 = map[string]string{"baremetal": "4.13", "vsphere": "4.14", "openstack": "4.15", "none": "4.21", "external": "4.21"}

func (r *resolver) ipv6First() (out []finding) {
	platform := r.in.Install.Platform
	since, allowed := primaryIPv6[platform]
	if !r.dualStack() || platform == "" || allowed && (r.version == "" || assets.AtLeast(r.version, since)) {
		return nil
	}
	hint := "OpenShift's installer takes no other order on platform " + platform
	if allowed {
		hint += " before " + since
	}
	all := r.networkLists()
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if list := all[field]; list[0].Addr().Is6() && familiesOf(list) == bothFamilies {
			out = append(out, finding{field: field, found: "IPv6 first", expected: "IPv4 first", hint: hint})
		}
	}
	return out
}

// primaryFamily requires VIPs that the installer knows to begin with the primary family of each
// network.
func (r *resolver) primaryFamily() (out []finding) {
	if !r.dualStack() {
		return nil
	}
	all := r.networkLists()
	for _, list := range [][]place{r.api, r.ingress} {
		if len(list) == 0 || strings.HasPrefix(list[0].field, "spec.") {
			continue
		}
		first := installconfig.Family(list[0].Addr)
		differ := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(f string) bool { return installconfig.Family(all[f][0].Addr()) == first })
		// checkFamilies reports it of two VIPs.
		if len(differ) > 0 && (len(list) == 1 || !slices.Contains(differ, "networking.machineNetwork")) {
			out = append(out, finding{field: list[0].field, found: first + " first", expected: "the family that is first in " + strings.Join(differ, " and ")})
		}
	}
	return out
}

// removedNetworkTypes reports OpenShift SDN; clusters with it were still upgraded to 4.16.
func (r *resolver) removedNetworkTypes() []finding {
	f := finding{field: "networking.networkType", found: r.in.Install.NetworkType, expected: "OVNKubernetes, or an OpenShift before 4.15"}
	if r.in.Install.Doc.Has("networking.type") && !r.in.Install.Doc.Has(f.field) {
		f.field = "networking.type"
	}
	switch {
	case strings.EqualFold(f.found, "Kuryr"):
	case !strings.EqualFold(f.found, "OpenShiftSDN"):
		return nil
	case r.version != "" && !assets.AtLeast(r.version, "4.17"):
		f.severity, f.hint = problem.Warning, "a cluster that was installed before may have it until 4.16"
	}
	return []finding{f}
}

// ovnDefaults are OVN-Kubernetes' internal networks; the first of a family is the default join
// network.
var ovnDefaults = lists.Map([]string{"100.64.0.0/16", "100.88.0.0/16", "169.254.0.0/17", "fd98::/64", "fd97::/64", "fd69::/112"}, netip.MustParsePrefix)

func (r *resolver) ovnNetworks() (out []finding) {
	i := r.in.Install
	if !i.OVNKubernetes() {
		return nil
	}
	for _, n := range slices.Concat(i.MachineNetworks, i.ServiceNetworks, i.ClusterNetworks) {
		for k, own := range ovnDefaults {
			if n.Overlaps(own) && (k > 0 || i.JoinNetwork == nil) {
				out = append(out, finding{field: n.Field, found: problem.Quote(n.String()), expected: "a network that does not overlap " + own.String() + ", which OVN-Kubernetes uses"})
			}
		}
	}
	return out
}

func (r *resolver) oneHostPrefix() (out []finding) {
	var first *installconfig.Network
	for k := range r.in.Install.ClusterNetworks {
		n := &r.in.Install.ClusterNetworks[k]
		switch {
		case !n.Addr().Is4() || n.HostPrefix == 0:
		case first == nil:
			first = n
		case n.HostPrefix != first.HostPrefix:
			out = append(out, finding{field: strings.TrimSuffix(n.Field, "cidr") + "hostPrefix", found: fmt.Sprint(n.HostPrefix),
				expected: fmt.Sprintf("%d, as of %s", first.HostPrefix, first)})
		}
	}
	return out
}

func (r *resolver) twoNodePlatforms() (out []finding) {
	i := r.in.Install
	if i.Platform == "" || slices.Contains([]string{"baremetal", "none", "external"}, i.Platform) {
		return nil
	}
	const expected = "platform baremetal, none or external"
	if i.Arbiter != nil {
		out = append(out, finding{field: "arbiter", found: "platform " + i.Platform, expected: expected})
	}
	if i.Fencing {
		out = append(out, finding{field: "controlPlane.fencing", found: "platform " + i.Platform, expected: expected})
	}
	return out
}

func (r *resolver) fencingCredentials() []finding {
	i := r.in.Install
	n := i.FencingCredentials
	switch two := i.ControlPlane.Replicas == 2; {
	case !i.Fencing || i.Arbiter != nil:
	case two && n != 2:
		return []finding{{field: "controlPlane.fencing.credentials", found: fmt.Sprint(n), expected: "2 entries, one for each node",
			hint: "their content is not read: {} is enough"}}
	case !two && n > 0:
		return []finding{{field: "controlPlane.fencing", found: fmt.Sprintf("fencing with %d control-plane nodes", i.ControlPlane.Replicas), expected: "controlPlane.replicas: 2"}}
	}
	return nil
}

func (r *resolver) inPlace() []finding {
	if i := r.in.Install; i.BootstrapInPlace && i.Platform == "baremetal" && i.ControlPlane.Replicas == 1 {
		return []finding{{field: "bootstrapInPlace", found: "a single node on platform baremetal", expected: "platform none or external"}}
	}
	return nil
}

// agentBased reports whether openshift-install's agent-based method installs the cluster. A
// file without rendezvousIP may only hold addresses of hosts.
func (r *resolver) agentBased() bool {
	return r.in.Agent != nil && r.in.Agent.RendezvousIP != nil && r.in.Manifests == nil
}

func (r *resolver) agentTopology() (out []finding) {
	i := r.in.Install
	if !r.agentBased() {
		return nil
	}
	switch n := i.ControlPlane.Replicas; {
	case n > 5:
		out = append(out, finding{field: "controlPlane.replicas", found: fmt.Sprint(n), expected: "at most 5 in an agent-based installation"})
	case n == 1 && !r.schedulable():
		out = append(out, finding{field: "compute", found: "compute nodes beside a single control-plane node", expected: "compute[0].replicas: 0 in an agent-based installation"})
	case n == 1 && assets.PlatformNamed(i.Platform).HasVIPs():
		out = append(out, finding{field: "platform." + i.Platform, found: "a single node", expected: "platform none or external in an agent-based installation"})
	case n == 1 && !i.OVNKubernetes():
		out = append(out, finding{field: "networking.networkType", found: i.NetworkType, expected: "OVNKubernetes for a single node"})
	}
	return out
}

func (r *resolver) agentPlatform() []finding {
	p := r.in.Install.Platform
	if !r.agentBased() || p != "openstack" && p != "ovirt" && (p != "nutanix" || r.version == "" || assets.AtLeast(r.version, "4.19")) {
		return nil
	}
	return []finding{{field: "platform." + p, found: "an agent-config.yaml with rendezvousIP", expected: "platform baremetal, vsphere, none, external, or nutanix from OpenShift 4.19",
		hint: "an agent-config.yaml that only lists addresses has no rendezvousIP"}}
}

// feature is a field that some releases gate by a feature set.
type feature struct {
	used  bool
	field string
	// what names it; since is the first release without the gate, or empty.
	what, since string
}

// features lists the gated features of the install-config (openshift/api, features/features.go of each release).
func (r *resolver) features() []feature {
	i := r.in.Install
	return []feature{
		{i.ExternalDNS, "platform." + i.Platform + ".dnsRecordsType", "dnsRecordsType: External", ""},
		{i.Arbiter != nil, "arbiter", "an arbiter", "4.20"},
		{i.Fencing, "controlPlane.fencing", "fencing", "4.22"},
		{i.Platform == "vsphere" && len(i.Hosts) > 0, "platform.vsphere.hosts", "static addresses of hosts", "4.16"},
	}
}

func (r *resolver) gatedFeatures() (out []finding) {
	if r.in.Install.FeatureSet != "" {
		return nil
	}
	for _, f := range r.features() {
		switch {
		case !f.used:
		case f.since == "":
			out = append(out, finding{field: f.field, found: "no featureSet", expected: "featureSet: TechPreviewNoUpgrade, as OpenShift has this as a preview only"})
		case r.version != "" && !assets.AtLeast(r.version, f.since):
			out = append(out, finding{field: f.field, found: "OpenShift " + r.version, expected: "OpenShift " + f.since + " or later for " + f.what + ", or a featureSet"})
		}
	}
	return out
}

// newerFields warns of fields that the release ignores or, from 4.22, refuses.
func (r *resolver) newerFields() (out []finding) {
	for _, f := range r.in.Install.Newer {
		gated := r.in.Install.FeatureSet == "" && slices.ContainsFunc(r.features(), func(known feature) bool { return known.field == f.Field })
		if r.version != "" && !assets.AtLeast(r.version, f.Since) && !gated && !strings.HasSuffix(f.Field, ".loadBalancer") {
			out = append(out, finding{severity: problem.Warning, field: f.Field, found: "OpenShift " + r.version, expected: "OpenShift " + f.Since + " or later, the first with this field"})
		}
	}
	return out
}
