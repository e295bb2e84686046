package render_test

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/assets"
)

// The model decides like OpenShift's installer, function by function, on the fields of mutants;
// it was compared with the installer of 5.0 itself. It omits hosts, credentials and other
// requirements of platforms.
func (m *mutant) refused() (by []string) {
	i := m.defaulted()
	name, p := i.platform()
	for _, rule := range []struct {
		function string
		since    string
		broken   bool
	}{
		{"UnmarshalStrict", "", m.odd != nil && (m.odd.want == "type" || m.odd.want == "misspelt")},
		{"ClusterName", "", len(i.Metadata.Name) > 54 || strings.ContainsAny(i.Metadata.Name, "D_") || m.odd != nil && m.odd.want == "name"},
		{"OnPremClusterName", "", strings.Contains(i.Metadata.Name, ".") && slices.Contains([]string{"baremetal", "vsphere", "openstack", "nutanix"}, name)},
		{"validateNetworking", "4.17", strings.EqualFold(i.Networking.NetworkType, "OpenShiftSDN")},
		{"validateNetworking", "4.15", i.Networking.NetworkType == "Kuryr"},
		{"validateNetworkingIPVersion", "", i.familiesRefused()},
		{"validateNetworkEntryOrder", "", i.orderRefused(name)},
		{"validateMachineNetwork", "", i.overlap()},
		{"validateNetworkNotOverlapDefaultOVNSubnets", "4.19", i.overlapsOVN()},
		{"validateServiceNetwork", "", slices.ContainsFunc(i.Networking.ServiceNetwork, func(n string) bool { return n == "10.96.0.0/11" || n == "fd02::/64" })},
		{"validateClusterNetwork", "", i.hostPrefixesRefused()},
		{"validateClusterNetwork", "4.19", i.hostPrefixesDiffer()},
		{"validateOVNKubernetesConfig", "", i.joinRefused()},
		{"validateAPIAndIngressVIPs", "", i.vipsRefused(name, p)},
		{"validateAPIAndIngressVIPs", "4.20", i.primaryRefused(p)},
		{"validateLoadBalancer", "", p.LoadBalancer != nil && !slices.Contains([]string{"OpenShiftManagedDefault", "UserManaged"}, (*p.LoadBalancer)["type"])},
		{"ValidatePlatform", "", p.DNSRecords == "External" && p.balancer() != "UserManaged"},
		{"validateControlPlane", "", *i.ControlPlane.Replicas < 1},
		{"validateArbiter", "", i.Arbiter != nil && (!bareMachines(name) || *i.Arbiter.Replicas < 1 || *i.ControlPlane.Replicas < 2)},
		{"validateFencingForPlatform", "", i.ControlPlane.Fencing != nil && !bareMachines(name)},
		{"validateCredentialsNumber", "4.19", i.Arbiter == nil && i.credentialsRefused()},
		{"validateCompute", "", i.computeRefused()},
		{"ValidateFeatureSet", "", i.FeatureSet == "Mine"},
		{"validateGatedFeatures", "", i.FeatureSet == "" && i.gated(p)},
		{"ValidateInstallConfig", "", i.BootstrapInPlace != nil && name == "baremetal" && *i.ControlPlane.Replicas == 1},
		{"agent: ValidateSupportedPlatforms", "", i.agentBased && (name == "openstack" || name == "nutanix" && !i.atLeast("4.19"))},
		{"agent: validateTNAConfiguration", "", i.agentBased && i.Arbiter != nil && *i.ControlPlane.Replicas == 2 && *i.Arbiter.Replicas != 1},
		{"agent: validateControlPlaneConfiguration", "", i.agentBased && *i.ControlPlane.Replicas > 5},
		{"agent: validateSNOConfiguration", "", i.agentBased && *i.ControlPlane.Replicas == 1 && (i.workers() > 0 || name != "none" && name != "external" || i.Networking.NetworkType != "OVNKubernetes")},
	} {
		if rule.broken && (rule.since == "" || i.atLeast(rule.since)) {
			by = append(by, rule.function)
		}
	}
	return by
}

func (m *mutant) atLeast(release string) bool {
	return m.version == "" || assets.AtLeast(m.version, release)
}

func bareMachines(platform string) bool {
	return slices.Contains([]string{"baremetal", "none", "external"}, platform)
}

func (p mutantPlatform) balancer() string {
	if p.LoadBalancer == nil {
		return ""
	}
	return (*p.LoadBalancer)["type"]
}

// defaulted applies the installer's defaults (SetInstallConfigDefaults, convertNetworking).
func (m *mutant) defaulted() *mutant {
	i := *m
	n := &i.Networking
	n.NetworkType = cmp.Or(n.NetworkType, "OVNKubernetes")
	if strings.EqualFold(n.NetworkType, "OVNKubernetes") {
		n.NetworkType = "OVNKubernetes"
	}
	if len(n.MachineNetwork) == 0 {
		n.MachineNetwork = []mutantCIDR{{CIDR: "10.0.0.0/16"}}
	}
	if len(n.ServiceNetwork) == 0 {
		n.ServiceNetwork = []string{"172.30.0.0/16"}
	}
	if len(n.ClusterNetwork) == 0 {
		n.ClusterNetwork = []mutantCIDR{{"10.128.0.0/14", 23}}
	}
	i.Platform = map[string]mutantPlatform{}
	name, p := m.platform()
	if name == "openstack" && p.balancer() != "UserManaged" {
		first := netip.MustParsePrefix(n.MachineNetwork[0].CIDR).Addr()
		if len(p.APIVIPs) == 0 {
			p.APIVIPs = []string{nth(first, 5)}
		}
		if len(p.IngressVIPs) == 0 {
			p.IngressVIPs = []string{nth(first, 7)}
		}
	}
	if name == "nutanix" { // ensureIPv4IsFirstInDualStackSlice
		p.APIVIPs, p.IngressVIPs = ipv4First(p.APIVIPs), ipv4First(p.IngressVIPs)
	}
	i.Platform[name] = p
	return &i
}

func nth(a netip.Addr, n int) string {
	for range n {
		a = a.Next()
	}
	return a.String()
}

func ipv4First(list []string) []string {
	if len(list) == 2 && is6(list[0]) && !is6(list[1]) {
		return []string{list[1], list[0]}
	}
	return list
}

func is6(address string) bool { return strings.Contains(address, ":") }

// lists returns the networks of each kind.
func (m *mutant) lists() [][]string {
	out := [][]string{nil, nil, m.Networking.ServiceNetwork}
	for _, n := range m.Networking.MachineNetwork {
		out[0] = append(out[0], n.CIDR)
	}
	for _, n := range m.Networking.ClusterNetwork {
		out[1] = append(out[1], n.CIDR)
	}
	if m.dhcp {
		return out[1:]
	}
	return out
}

func both(list []string) bool {
	return slices.ContainsFunc(list, is6) && !allOf(list, is6)
}

func allOf(list []string, f func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !f(s) })
}

func (m *mutant) familiesRefused() bool {
	services := m.Networking.ServiceNetwork
	if !both(services) {
		return len(services) > 1 && !is6(services[0])
	}
	return len(services) != 2 || slices.ContainsFunc(m.lists(), func(l []string) bool { return !both(l) })
}

func (m *mutant) orderRefused(platform string) bool {
	since := map[string]string{"baremetal": "4.13", "vsphere": "4.14", "openstack": "4.15", "none": "4.21", "external": "4.21"}[platform]
	if !both(m.Networking.ServiceNetwork) || since != "" && m.atLeast(since) {
		return false
	}
	return slices.ContainsFunc(m.lists(), func(l []string) bool { return both(l) && is6(l[0]) })
}

func overlaps(a, b string) bool { return netip.MustParsePrefix(a).Overlaps(netip.MustParsePrefix(b)) }

func (m *mutant) overlap() bool {
	all := slices.Concat(m.lists()...)
	for k, n := range all {
		for _, before := range all[:k] {
			if overlaps(n, before) {
				return true
			}
		}
	}
	return false
}

func (m *mutant) overlapsOVN() bool {
	return m.Networking.NetworkType == "OVNKubernetes" && slices.ContainsFunc(slices.Concat(m.lists()...), func(n string) bool {
		return m.Networking.OVN == nil && overlaps(n, "100.64.0.0/16") || slices.ContainsFunc([]string{"100.88.0.0/16", "169.254.0.0/17", "fd98::/64", "fd97::/64", "fd69::/112"},
			func(own string) bool { return overlaps(n, own) })
	})
}

func (m *mutant) hostPrefixesRefused() bool {
	return slices.ContainsFunc(m.Networking.ClusterNetwork, func(n mutantCIDR) bool {
		if n.HostPrefix == 0 && m.Networking.NetworkType != "OVNKubernetes" {
			return false
		}
		return n.HostPrefix < netip.MustParsePrefix(n.CIDR).Bits() || is6(n.CIDR) && n.HostPrefix != 64
	})
}

func (m *mutant) hostPrefixesDiffer() bool {
	c := m.Networking.ClusterNetwork
	return len(c) == 2 && !is6(c[0].CIDR) && !is6(c[1].CIDR) && c[0].HostPrefix != c[1].HostPrefix
}

func (m *mutant) joinRefused() bool {
	if m.Networking.OVN == nil {
		return false
	}
	join := netip.MustParsePrefix(m.Networking.OVN.IPv4.Join)
	nodes := 0
	for _, n := range m.Networking.ClusterNetwork {
		if size := n.HostPrefix - netip.MustParsePrefix(n.CIDR).Bits(); !is6(n.CIDR) && size >= 0 {
			nodes += 1 << size
		}
	}
	return m.Networking.NetworkType != "OVNKubernetes" || join != join.Masked() || nodes >= 1<<(32-join.Bits())-3 ||
		slices.ContainsFunc(slices.Concat(m.lists()...), func(n string) bool { return overlaps(n, join.String()) })
}

func (m *mutant) vipsRefused(platform string, p mutantPlatform) bool {
	if platform == "none" || platform == "external" {
		return false
	}
	agent := m.agentBased && (platform == "vsphere" || platform == "nutanix" && m.atLeast("4.19"))
	strict := platform == "baremetal" || platform == "openstack" || agent
	if len(p.APIVIPs) == 0 || len(p.IngressVIPs) == 0 {
		return strict || len(p.APIVIPs)+len(p.IngressVIPs) > 0
	}
	for _, list := range [][]string{p.APIVIPs, p.IngressVIPs} {
		if len(list) == 2 && !both(list) {
			return true
		}
	}
	if p.balancer() == "UserManaged" {
		return false
	}
	outside := func(vip string) bool {
		return allOf(m.lists()[0], func(n string) bool { return !netip.MustParsePrefix(n).Contains(netip.MustParseAddr(vip)) })
	}
	return strict && slices.ContainsFunc(slices.Concat(p.APIVIPs, p.IngressVIPs), outside) ||
		slices.ContainsFunc(p.APIVIPs, func(a string) bool { return slices.Contains(p.IngressVIPs, a) })
}

func (m *mutant) primaryRefused(p mutantPlatform) bool {
	if !both(m.Networking.ServiceNetwork) {
		return false
	}
	for _, list := range [][]string{p.APIVIPs, p.IngressVIPs} {
		if len(list) > 0 && slices.ContainsFunc(m.lists(), func(l []string) bool { return is6(l[0]) != is6(list[0]) }) {
			return true
		}
	}
	return false
}

func (m *mutant) credentialsRefused() bool {
	n := 0
	if f := m.ControlPlane.Fencing; f != nil {
		n = len(f.Credentials)
	}
	if *m.ControlPlane.Replicas == 2 {
		return n != 2
	}
	return n > 0
}

func (m *mutant) computeRefused() bool {
	return len(m.Compute) > 1 || slices.ContainsFunc(m.Compute, func(p mutantPool) bool { return p.Name != "worker" })
}

func (m *mutant) workers() int {
	if len(m.Compute) == 0 || m.Compute[0].Replicas == nil {
		return 3
	}
	return *m.Compute[0].Replicas
}

func (m *mutant) gated(p mutantPlatform) bool {
	return p.DNSRecords == "External" || m.Arbiter != nil && !m.atLeast("4.20") || m.ControlPlane.Fencing != nil && !m.atLeast("4.22")
}

// differences are the inputs that vipgen refuses and the installer accepts: see docs/input.md.
var differences = []struct {
	reason string
	is     func(*mutant, problem.List) bool
}{
	{"vSphere and Nutanix may leave their VIPs to the user: vipgen has nothing to render then", has(problem.NoVIPs)},
	{"nodes cannot hold one address for two groups that elect apart", has(problem.VIPTaken)},
	{"the API of the Infrastructure object refuses another dnsRecordsType", func(m *mutant, l problem.List) bool {
		_, p := m.platform()
		return p.DNSRecords == "Mine" && has(problem.BadValue)(m, l)
	}},
	{"an arbiter is for two control-plane nodes without fencing, and there is one", func(m *mutant, l problem.List) bool { return m.Arbiter != nil && has(problem.Topology)(m, l) }},
	{"two nodes alone lose etcd with the first of them; installers before 4.19 do not look", func(m *mutant, l problem.List) bool {
		return *m.ControlPlane.Replicas == 2 && !m.atLeast("4.19") && has(problem.Topology)(m, l)
	}},
	{"the first machine network is that of nodes' primary addresses, whatever services have", func(m *mutant, l problem.List) bool {
		_, p := m.platform()
		return (len(p.APIVIPs) == 2 || len(p.IngressVIPs) == 2) && has(problem.FamilyOrder)(m, l)
	}},
	{"4.12 has no UserManaged, and its installer ignores it", func(m *mutant, l problem.List) bool { return m.version == "4.12" && has(problem.NeedsVersion)(m, l) }},
}

func has(code problem.Code) func(*mutant, problem.List) bool {
	return func(_ *mutant, l problem.List) bool {
		return slices.ContainsFunc(l.Errors(), func(p problem.Problem) bool { return p.Code == code })
	}
}

// TestInstallerModel loads 2,000 mutated examples in vipgen and in the model: both refuse or
// both accept, except for the differences, each of which occurs.
func TestInstallerModel(t *testing.T) {
	refused, seen := 0, map[string]int{}
	for n, m := range mutants(t, 2000) {
		list, by := m.load(t), m.refused()
		if len(by) > 0 {
			refused++
		}
		if (list.Err() != nil) == (len(by) > 0) {
			continue
		}
		reason := ""
		for _, d := range differences {
			if len(by) == 0 && reason == "" && d.is(m, list) {
				reason = d.reason
			}
		}
		if seen[reason]++; reason == "" {
			t.Errorf("mutant %d of OpenShift %q, agent-based %t: the installer refuses by %q, vipgen:\n%s\n%s", n, m.version, m.agentBased, by, list.Error(), m.text(t))
		}
	}
	for _, d := range differences {
		if seen[d.reason] == 0 {
			t.Errorf("no mutant for %q", d.reason)
		}
	}
	t.Logf("of 2000, the installer refuses %d; vipgen differs in %v", refused, seen)
	if refused < 500 || refused > 1500 {
		t.Errorf("%d of 2000 refused: the mutations are of no use", refused)
	}
}

// TestInstallerModelOfObjects loads mutated examples as objects without machine networks: the
// rules of families apply to the existing networks.
func TestInstallerModelOfObjects(t *testing.T) {
	count := map[bool]int{}
	for n, m := range mutants(t, 2000) {
		name, _ := m.platform()
		if m.odd != nil || name != "baremetal" && name != "vsphere" {
			continue
		}
		m.dhcp = true
		list, i := m.loadObject(t), m.defaulted()
		_, p := i.platform()
		refused := i.familiesRefused() || i.orderRefused(name) || i.atLeast("4.20") && i.primaryRefused(p)
		count[refused]++
		if has(problem.FamilyOrder)(m, list) && !refused || refused && list.Err() == nil {
			t.Errorf("mutant %d of OpenShift %q: refused %t, vipgen:\n%s\n%s", n, m.version, refused, list.Error(), m.text(t))
		}
	}
	t.Logf("%d are refused for their families, %d are not", count[true], count[false])
	if count[true] < 50 || count[false] < 200 {
		t.Errorf("%v: the mutations are of no use", count)
	}
}
