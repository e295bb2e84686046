package render_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// mutant is an install-config of the examples with changes, and its other files.
type mutant struct {
	APIVersion string `json:"apiVersion"`
	BaseDomain string `json:"baseDomain"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Networking struct {
		NetworkType    string       `json:"networkType,omitempty"`
		MachineNetwork []mutantCIDR `json:"machineNetwork,omitempty"`
		ClusterNetwork []mutantCIDR `json:"clusterNetwork,omitempty"`
		ServiceNetwork []string     `json:"serviceNetwork,omitempty"`
		OVN            *mutantOVN   `json:"ovnKubernetesConfig,omitempty"`
	} `json:"networking"`
	ControlPlane     mutantPool                `json:"controlPlane"`
	Arbiter          *mutantPool               `json:"arbiter,omitempty"`
	Compute          []mutantPool              `json:"compute,omitempty"`
	Platform         map[string]mutantPlatform `json:"platform"`
	FeatureSet       string                    `json:"featureSet,omitempty"`
	BootstrapInPlace *struct{}                 `json:"bootstrapInPlace,omitempty"`

	version    string // of OpenShift, empty for any
	agentBased bool
	dhcp       bool // an object without machine networks
	odd        *oddField
}

type (
	mutantCIDR struct {
		CIDR       string `json:"cidr"`
		HostPrefix int    `json:"hostPrefix,omitempty"`
	}
	mutantOVN struct {
		IPv4 struct {
			Join string `json:"internalJoinSubnet"`
		} `json:"ipv4"`
	}
	mutantPool struct {
		Name     string         `json:"name,omitempty"`
		Replicas *int           `json:"replicas,omitempty"`
		Fencing  *mutantFencing `json:"fencing,omitempty"`
	}
	mutantFencing struct {
		Credentials []map[string]string `json:"credentials,omitempty"`
	}
	mutantPlatform struct {
		APIVIPs      []string           `json:"apiVIPs,omitempty"`
		IngressVIPs  []string           `json:"ingressVIPs,omitempty"`
		LoadBalancer *map[string]string `json:"loadBalancer,omitempty"`
		DNSRecords   string             `json:"dnsRecordsType,omitempty"`
	}
	// oddField is a field of another type, or one that no installer has.
	oddField struct {
		path  string
		value any
		want  string // the model's value
	}
)

// platform returns the only platform, with its name.
func (m *mutant) platform() (string, mutantPlatform) {
	for name, p := range m.Platform {
		return name, p
	}
	panic("no platform")
}

func (m *mutant) setPlatform(change func(*mutantPlatform)) {
	name, p := m.platform()
	if name == "none" || name == "external" {
		return // they have no such fields
	}
	change(&p)
	m.Platform[name] = p
}

// text returns the install-config.
func (m *mutant) text(t testing.TB) string {
	t.Helper()
	data, err := yaml.Marshal(m)
	testkit.Must(t, err)
	if m.odd == nil {
		return string(data)
	}
	all := map[string]any{}
	testkit.Must(t, yaml.Unmarshal(data, &all))
	at := all
	steps := strings.Split(strings.ReplaceAll(m.odd.path, "PLATFORM", func() string { p, _ := m.platform(); return p }()), ".")
	for _, s := range steps[:len(steps)-1] {
		next, ok := at[s].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[s] = next
		}
		at = next
	}
	at[steps[len(steps)-1]] = m.odd.value
	data, err = yaml.Marshal(all)
	testkit.Must(t, err)
	return string(data)
}

// Parts of mutants. Addresses and networks are those for documentation and of the defaults.
var (
	machineNetworks = [][]string{nil, {"192.0.2.0/24"}, {"2001:db8::/64"}, {"192.0.2.0/24", "2001:db8::/64"}, {"2001:db8::/64", "192.0.2.0/24"},
		{"192.0.2.0/24", "198.51.100.0/24"}, {"192.0.2.0/24", "100.64.8.0/24"}, {"192.0.2.0/24", "100.88.0.0/20"}, {"192.0.2.0/24", "fd98::/64"}}
	serviceNetworks = [][]string{nil, {"172.30.0.0/16"}, {"fd02::/112"}, {"172.30.0.0/16", "fd02::/112"}, {"fd02::/112", "172.30.0.0/16"},
		{"172.30.0.0/16", "172.31.0.0/16"}, {"172.30.0.0/16", "fd02::/112", "172.31.0.0/16"}, {"10.96.0.0/11"}, {"fd02::/64"}}
	clusterNetworks = [][]mutantCIDR{nil, {{"10.128.0.0/14", 23}}, {{"fd01::/48", 64}}, {{"10.128.0.0/14", 23}, {"fd01::/48", 64}}, {{"fd01::/48", 64}, {"10.128.0.0/14", 23}},
		{{"10.128.0.0/14", 0}}, {{"10.128.0.0/14", 10}}, {{"fd01::/48", 60}}, {{"10.128.0.0/14", 23}, {"10.132.0.0/14", 24}}, {{"10.128.0.0/14", 23}, {"10.132.0.0/14", 23}}, {{"100.64.0.0/14", 23}}}
	vipLists = [][]string{nil, {"192.0.2.5"}, {"2001:db8::5"}, {"192.0.2.5", "2001:db8::5"}, {"2001:db8::5", "192.0.2.5"}, {"203.0.113.5"}, {"192.0.2.5", "192.0.2.8"}}
	names    = []string{"demo", "dev.prod", strings.Repeat("a", 54), strings.Repeat("a", 55), "Demo", "a_b"}
	odd      = []oddField{
		{"platform.PLATFORM.aipVIPs", []string{"192.0.2.5"}, "misspelt"},
		{"platform.PLATFORM.ingressVIP s", []string{"192.0.2.6"}, "misspelt"},
		{"networking.machineNetworks", []mutantCIDR{{CIDR: "192.0.2.0/24"}}, "misspelt"},
		{"fencing", map[string]any{}, "misspelt"},
		{"controlPlane.replica", 3, "misspelt"},
		{"networking.machineNetwork", "192.0.2.0/24", "type"},
		{"networking.serviceNetwork", "172.30.0.0/16", "type"},
		{"controlPlane.replicas", "three", "type"},
		{"controlPlane.replicas", 3.0, ""},
		{"controlPlane", []int{3}, "type"},
		{"baseDomain", "a..b", "name"},
		{"baseDomain", "example.com.", ""},
		{"metadata.labels", map[string]string{"a": "b"}, ""},
		{"publish", "External", ""},
	}
	versions = []string{"", "", "", "4.12", "4.14", "4.15", "4.16", "4.17", "4.18", "4.19", "4.20", "4.21", "4.22", "5.0"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// mutations are functions that change one thing each.
var mutations = []func(*rand.Rand, *mutant){
	func(r *rand.Rand, m *mutant) {
		m.Networking.MachineNetwork = nil
		for _, n := range pick(r, machineNetworks) {
			m.Networking.MachineNetwork = append(m.Networking.MachineNetwork, mutantCIDR{CIDR: n})
		}
	},
	func(r *rand.Rand, m *mutant) { m.Networking.ServiceNetwork = pick(r, serviceNetworks) },
	func(r *rand.Rand, m *mutant) { m.Networking.ClusterNetwork = pick(r, clusterNetworks) },
	func(r *rand.Rand, m *mutant) { // both families, in each order
		k := 3 + r.IntN(2)
		m.Networking.MachineNetwork, m.Networking.ServiceNetwork, m.Networking.ClusterNetwork = nil, serviceNetworks[k], clusterNetworks[k]
		for _, n := range machineNetworks[k] {
			m.Networking.MachineNetwork = append(m.Networking.MachineNetwork, mutantCIDR{CIDR: n})
		}
	},
	func(r *rand.Rand, m *mutant) {
		m.Networking.NetworkType = pick(r, []string{"", "OVNKubernetes", "ovnkubernetes", "OpenShiftSDN", "openshiftsdn", "Kuryr", "Calico"})
	},
	func(r *rand.Rand, m *mutant) {
		m.Networking.OVN = &mutantOVN{}
		m.Networking.OVN.IPv4.Join = pick(r, []string{"100.66.0.0/16", "192.0.2.128/25", "10.128.0.0/16", "100.66.0.0/24", "100.66.0.1/16"})
	},
	func(r *rand.Rand, m *mutant) {
		m.setPlatform(func(p *mutantPlatform) { p.APIVIPs = pick(r, vipLists) })
	},
	func(r *rand.Rand, m *mutant) {
		m.setPlatform(func(p *mutantPlatform) {
			p.IngressVIPs = nil
			for _, v := range pick(r, vipLists) {
				p.IngressVIPs = append(p.IngressVIPs, strings.TrimSuffix(v, "5")+pick(r, []string{"6", "6", "6", "5"}))
			}
		})
	},
	func(r *rand.Rand, m *mutant) {
		m.setPlatform(func(p *mutantPlatform) {
			p.LoadBalancer = pick(r, []*map[string]string{nil, {}, {"type": ""}, {"type": "OpenShiftManagedDefault"}, {"type": "UserManaged"}, {"type": "Mine"}})
		})
	},
	func(r *rand.Rand, m *mutant) {
		m.setPlatform(func(p *mutantPlatform) { p.DNSRecords = pick(r, []string{"Internal", "External", "External", "Mine"}) })
	},
	func(r *rand.Rand, m *mutant) {
		_, p := m.platform()
		name := pick(r, []string{"baremetal", "vsphere", "openstack", "nutanix", "none", "external"})
		if name == "none" || name == "external" {
			p = mutantPlatform{}
		}
		m.Platform = map[string]mutantPlatform{name: p}
	},
	func(r *rand.Rand, m *mutant) { n := r.IntN(8); m.ControlPlane.Replicas = &n },
	func(r *rand.Rand, m *mutant) {
		n := r.IntN(3)
		m.Compute = []mutantPool{{Name: "worker", Replicas: &n}}
	},
	func(r *rand.Rand, m *mutant) {
		n, two := r.IntN(3), 2
		m.Arbiter = &mutantPool{Name: "arbiter", Replicas: &n}
		if r.IntN(3) > 0 {
			m.ControlPlane.Replicas = &two
		}
	},
	func(r *rand.Rand, m *mutant) {
		two := 2
		m.ControlPlane.Fencing = &mutantFencing{}
		for n := range pick(r, []int{0, 1, 2, 2, 2, 3}) {
			m.ControlPlane.Fencing.Credentials = append(m.ControlPlane.Fencing.Credentials, map[string]string{"hostName": fmt.Sprintf("m%d", n),
				"username": "u", "password": "p", "address": fmt.Sprintf("redfish+https://192.0.2.%d/redfish/v1/Systems/1", 100+n)})
		}
		if r.IntN(3) > 0 {
			m.ControlPlane.Replicas = &two
		}
	},
	func(r *rand.Rand, m *mutant) {
		m.FeatureSet = pick(r, []string{"TechPreviewNoUpgrade", "TechPreviewNoUpgrade", "Mine"})
	},
	func(r *rand.Rand, m *mutant) { m.Metadata.Name = pick(r, names) },
	func(r *rand.Rand, m *mutant) { m.ControlPlane.Name = pick(r, []string{"", "control"}) },
	func(r *rand.Rand, m *mutant) {
		m.Compute = append(slices.Clip(m.Compute), mutantPool{Name: pick(r, []string{"infra", "edge", "worker", "master"})})
	},
	func(r *rand.Rand, m *mutant) { m.BootstrapInPlace = &struct{}{} },
	func(r *rand.Rand, m *mutant) { o := pick(r, odd); m.odd = &o },
	func(_ *rand.Rand, m *mutant) { m.agentBased = true },
}

// mutants returns n changed examples, the same ones every time.
func mutants(t testing.TB, n int) (out []*mutant) {
	r := rand.New(rand.NewPCG(32, 2000))
	files, err := filepath.Glob("../examples/*/install-config.yaml")
	testkit.Must(t, err)
	for range n {
		data, err := os.ReadFile(pick(r, files))
		testkit.Must(t, err)
		m := &mutant{version: pick(r, versions)}
		testkit.Must(t, yaml.Unmarshal(data, m))
		for range 1 + r.IntN(3) {
			pick(r, mutations)(r, m)
		}
		out = append(out, m)
	}
	return out
}

// load loads a mutant in vipgen.
func (m *mutant) load(t testing.TB) problem.List {
	s := render.Sources{InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(m.text(t))}}
	if m.agentBased {
		s.AgentConfig = &render.File{Name: "agent-config.yaml", Data: []byte("apiVersion: v1beta1\nrendezvousIP: 192.0.2.10\n")}
	}
	if name, _ := m.platform(); name == "none" || name == "external" {
		s.VIPConfig = &render.File{Name: "vipgen.yaml", Data: []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: None}}\n")}
	}
	_, list, _ := render.Load(s, render.Options{OpenShiftVersion: m.version})
	return list
}

// loadObject loads a mutant as an AgentClusterInstall for hosts with DHCP.
func (m *mutant) loadObject(t testing.TB) problem.List {
	name, p := m.platform()
	spec := map[string]any{
		"clusterDeploymentRef":  map[string]any{"name": "demo"},
		"platformType":          map[string]string{"baremetal": "BareMetal", "vsphere": "VSphere"}[name],
		"apiVIPs":               p.APIVIPs,
		"ingressVIPs":           p.IngressVIPs,
		"networking":            map[string]any{"clusterNetwork": m.Networking.ClusterNetwork, "serviceNetwork": m.Networking.ServiceNetwork},
		"provisionRequirements": map[string]any{"controlPlaneAgents": 3},
	}
	if p.balancer() == "UserManaged" {
		spec["loadBalancer"] = map[string]any{"type": "UserManaged"}
	}
	var file []byte
	for _, o := range []map[string]any{
		{"apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall", "metadata": map[string]any{"name": "demo"}, "spec": spec},
		{"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment", "metadata": map[string]any{"name": "demo"},
			"spec": map[string]any{"clusterName": "demo", "baseDomain": "example.com"}},
	} {
		data, err := yaml.Marshal(o)
		testkit.Must(t, err)
		file = append(append(file, "---\n"...), data...)
	}
	_, list, _ := render.Load(render.Sources{InstallConfig: render.File{Name: "cluster.yaml", Data: file}}, render.Options{OpenShiftVersion: m.version})
	return list
}
