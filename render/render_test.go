package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// input returns the files of a cluster: an install-config with a name and the given lines under
// platform, and the spec of a vipgen.yaml.
func input(name, platform, spec string) Sources {
	s := Sources{InstallConfig: File{Name: "install-config.yaml", Data: fmt.Appendf(nil, `apiVersion: v1
baseDomain: example.com
metadata: {name: %s}
networking: {machineNetwork: [{cidr: 192.0.2.0/24}]}
compute: [{name: worker, replicas: 2}]
platform: {%s}
`, name, platform)}}
	if spec != "" {
		s.VIPConfig = &File{Name: "vipgen.yaml", Data: []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {" + spec + "}\n")}
	}
	return s
}

const (
	managed     = "baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]}"
	userManaged = "baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3], loadBalancer: {type: UserManaged}}"
)

func mustLoad(t *testing.T, s Sources, o Options) *Cluster {
	t.Helper()
	c, list, err := Load(s, o)
	if err != nil {
		t.Fatal(list)
	}
	return c
}

func TestRouterIDs(t *testing.T) {
	blue := func(name string, id int) string {
		return fmt.Sprintf("ingress: [{name: %s, vips: [192.0.2.8], domains: [blue.example.com], virtualRouterID: %d}]", name, id)
	}
	more := func(name string, id int) string {
		return fmt.Sprintf("additionalAPIVIPs: [{name: %s, vips: [192.0.2.17], virtualRouterID: %d}]", name, id)
	}
	derived := v1alpha1.RouterID("vmware-ingress-blue")
	tests := []struct {
		name, cluster, platform, spec string
		want                          map[string]int
	}{
		{"derived", "vmware", userManaged, "", map[string]int{"api": 109, "ingress": 124}},
		{"the user's", "vmware", userManaged, "vrrp: {virtualRouterIDs: {api: 1, ingress: 255}}", map[string]int{"api": 1, "ingress": 255}},
		{"a derived one steps aside for the user's", "vmware", userManaged, "vrrp: {virtualRouterIDs: {ingress: 109}}", map[string]int{"api": 110, "ingress": 109}},
		{"another controller", "vmware", userManaged, blue("blue", 0), map[string]int{"api": 109, "ingress": 124, "ingress-blue": derived}},
		{"another controller with an ID", "vmware", userManaged, blue("blue", 9), map[string]int{"api": 109, "ingress": 124, "ingress-blue": 9}},
		{"derived ones step aside for another controller's", "vmware", userManaged, blue("blue", 124), map[string]int{"api": 109, "ingress": 125, "ingress-blue": 124}},
		{"beside OpenShift's own keepalived", "vmware", managed, "vrrp: {virtualRouterIDs: {ingress: 5}}", map[string]int{"api": 109, "ingress": 5}},
		{"more API VIPs", "vmware", userManaged, more("mgmt", 0), map[string]int{"api": 109, "ingress": 124, "api-mgmt": v1alpha1.RouterID("vmware-api-mgmt")}},
		{"more API VIPs with an ID", "vmware", userManaged, more("mgmt", 124), map[string]int{"api": 109, "ingress": 125, "api-mgmt": 124}},
		{"DNS VIP", "cnf10", "baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3], dnsVIP: 192.0.2.4}", "", map[string]int{"api": 147, "dns": 158, "ingress": 2}},
		{"ingress steps aside for the API", "vmware", userManaged, "vrrp: {virtualRouterIDs: {api: 124}}", map[string]int{"api": 124, "ingress": 125}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]int{}
			for _, g := range mustLoad(t, input(tt.cluster, tt.platform, tt.spec), Options{}).Config.Spec.Groups {
				got[g.Name] = g.VirtualRouterID
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}

func release(version string) *Release {
	return &Release{Version: version, Images: map[string]string{
		tagKeepalived: "r/keepalived@sha256:1", tagHAProxy: "r/haproxy@sha256:2", tagCoreDNS: "r/coredns@sha256:3"}}
}

// TestHealthPort: an ingress controller's own port counts more than that of all routers.
func TestHealthPort(t *testing.T) {
	for spec, want := range map[string]int{
		"": 1936, "ports: {routerHealth: 1940}": 1940, "ports: {routerHealth: 1940}, ingress: [{name: default, healthPort: 1937}]": 1937,
	} {
		groups := mustLoad(t, input("demo", userManaged, spec), Options{}).Config.Spec.Groups
		testkit.Equal(testkit.In(t, spec), want, groups[len(groups)-1].HealthPort)
	}
}

// The user's images before those of the release, and these before vipgen's.
func TestImages(t *testing.T) {
	want := v1alpha1.Images{Agent: "u/a", Keepalived: "u/k", HAProxy: "r/haproxy@sha256:2", CoreDNS: "r/coredns@sha256:3"}
	testkit.Equal(t, want, images(v1alpha1.Images{Agent: "u/a", Keepalived: "u/k"}, "4.14", release("4.14.1")))
	for _, i := range ImageList(images(v1alpha1.Images{}, "", nil)) {
		testkit.Equal(testkit.In(t, i), true, v1alpha1.ValidImage(i[1]))
	}
}

// Flags override vipgen.yaml, which overrides the release.
func TestVersion(t *testing.T) {
	tests := []struct {
		flag, spec, release string
		want                string
	}{
		{"", "", "", ""},
		{"", "", "4.16.3", "4.16"},
		{"", "4.15", "4.16.3", "4.15"},
		{"4.14", "4.15", "4.16.3", "4.14"},
		{"4.14", "", "", "4.14"},
	}
	for _, tt := range tests {
		o := Options{OpenShiftVersion: tt.flag}
		if tt.release != "" {
			o.Release = release(tt.release)
		}
		spec := ""
		if tt.spec != "" {
			spec = `openshiftVersion: "` + tt.spec + `"`
		}
		testkit.Equal(t, tt.want, mustLoad(t, input("demo", managed, spec), o).Version)
	}
	for in, want := range map[string]string{"4.18.3": "4.18", "4.18.0-rc.1": "4.18", "4.18": "4.18", "4": "", "": ""} {
		testkit.Equal(testkit.In(t, in), want, minor(in))
	}
}

// The initial VRRP settings of a cluster depend on the owner of the bootstrap host (hard case
// 23).
func TestStart(t *testing.T) {
	tests := []struct {
		name, platform, spec  string
		start, target, passwd string
	}{
		{"OpenShift's own keepalived is there", managed, "", "classic", "fast", "demo_api"},
		{"it is not", userManaged, "", "", "fast", "demo_api"},
		{"the user knows better", managed, "vrrp: {interoperable: false}", "", "fast", "demo_api"},
		{"classic is how it starts anyway", managed, "vrrp: {profile: classic}", "", "classic", "demo_api"},
		{"outside", userManaged, "loadBalancer: {type: External}", "", "", ""},
	}
	for _, tt := range tests {
		s := mustLoad(t, input("demo", tt.platform, tt.spec), Options{}).Config.Spec
		start := ""
		if s.VRRP.Start != nil {
			start = string(s.VRRP.Start.Profile)
		}
		if start != tt.start || string(s.VRRP.Target.Profile) != tt.target || s.Groups[0].Password != tt.passwd {
			t.Errorf("%s: starts as %q, then %q, password %q", tt.name, start, s.VRRP.Target.Profile, s.Groups[0].Password)
		}
	}
}

// Virtual machines stall occasionally, so that the platform determines the profile unless the
// user does.
func TestDefaultProfile(t *testing.T) {
	tests := []struct{ platform, spec, profile, why string }{
		{managed, "", "fast", "nodes of platform baremetal are taken for metal"},
		{vips("vsphere"), "", "virtual", "nodes of platform vsphere are virtual machines"},
		{vips("openstack"), "", "virtual", "openstack"},
		{vips("nutanix"), "", "virtual", "nutanix"},
		{"ovirt: {api_vips: [192.0.2.2], ingress_vips: [192.0.2.3]}", "vrrp: {mode: multicast}", "virtual", "ovirt"},
		{"none: {}", "apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]", "fast", "nodes of platform none are taken for metal"},
		{"external: {}", "apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]", "fast", "external"},
		{vips("vsphere"), "vrrp: {profile: fast}", "fast", ""},
		{vips("vsphere"), "vrrp: {profile: custom, advertInterval: 100ms}", "custom", ""},
		{managed, "vrrp: {profile: virtual}", "virtual", ""},
		{userManaged, "loadBalancer: {type: External}", "", ""},
	}
	for _, tt := range tests {
		c := mustLoad(t, input("demo", tt.platform, tt.spec), Options{})
		if got := c.Config.Spec.VRRP.Target.Profile; string(got) != tt.profile || !strings.Contains(c.ProfileReason, tt.why) || (c.ProfileReason == "") != (tt.why == "") {
			t.Errorf("%s, %s: profile %q, because %q", tt.platform, tt.spec, got, c.ProfileReason)
		}
	}
}

func vips(platform string) string {
	return platform + ": {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]}"
}

// A changed VIP changes cluster.yaml alone (DESIGN section 2).
func TestOneFileChanges(t *testing.T) {
	before, after := mustLoad(t, input("demo", managed, ""), Options{}), mustLoad(t, input("demo", strings.Replace(managed, "2.3", "2.9", 1), "dns: {upstreams: [198.51.100.1]}, additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.17]}], vrrp: {virtualRouterIDs: {ingress: 9}}"), Options{})
	a, err := before.Bundles()
	testkit.Must(t, err)
	b, err := after.Bundles()
	testkit.Must(t, err)
	for i := range a {
		var changed []string
		for j := range a[i].Files {
			if !cmp.Equal(a[i].Files[j], b[i].Files[j]) {
				changed = append(changed, a[i].Files[j].Path)
			}
		}
		if len(a[i].Files) != len(b[i].Files) || !cmp.Equal(a[i].Units, b[i].Units) || !slices.Equal(changed, []string{v1alpha1.ClusterConfigPath}) {
			t.Errorf("%s: changed %v", a[i].Role, changed)
		}
	}
}

// The installer's folder is flat, and no two files share a name.
func TestInstallDir(t *testing.T) {
	c := mustLoad(t, input("demo", userManaged, "openshiftVersion: '4.18', manifests: {nodeDisruptionPolicy: true}, pools: [{name: infra}, {name: x-vipgen}]"), Options{})
	files, err := new(Renderer).InstallDir(c, Want{})
	testkit.Must(t, err)
	got := lists.Map(files, func(f OutputFile) string { return f.Path })
	want := []string{
		"openshift/99_vipgen_master_machineconfig.yaml", "openshift/99_vipgen_worker_machineconfig.yaml",
		"openshift/99_vipgen_worker-infra_machineconfig.yaml", "openshift/99_vipgen_worker-x-vipgen_machineconfig.yaml",
		"openshift/99_vipgen_clusterrole.yaml", "openshift/99_vipgen_clusterrolebinding.yaml", "openshift/99_vipgen_role.yaml", "openshift/99_vipgen_rolebinding.yaml",
		"openshift/99_vipgen_node-disruption-policy.yaml",
	}
	testkit.Equal(t, want, got)
}

// A problem in one place of vipgen.yaml hides no other one, and causes no further ones.
func TestRefused(t *testing.T) {
	list := problem.List{{Severity: problem.Error, Field: "spec.vrrp.profile"}, {Severity: problem.Warning, Field: "spec.ports"}}
	for field, want := range map[string]bool{
		"spec.vrrp.profile":   true,
		"spec.vrrp.profile.x": true,
		"spec.vrrp":           true,
		"spec":                true,
		"spec.vrrp.profiles":  false,
		"spec.vrrp.mode":      false,
		"spec.ports.api":      false,
	} {
		if refused(list, field) != want {
			t.Errorf("%s is refused: %t", field, !want)
		}
	}
}

// Hosts with addresses are peers, by their name or a unique generated one; addresses in other
// networks do not count.
func TestPeers(t *testing.T) {
	const vsphere = `vsphere: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3], hosts: [
  {role: bootstrap, networkDevice: {ipAddrs: [192.0.2.9/24]}},
  {role: control-plane, networkDevice: {ipAddrs: [198.51.100.10/24, 192.0.2.10/24]}},
  {role: compute, networkDevice: {ipAddrs: [198.51.100.20/24]}}]}`
	s := input("demo", vsphere, "")
	s.AgentConfig = &File{Name: "agent-config.yaml", Data: []byte(`apiVersion: v1beta1
kind: AgentConfig
rendezvousIP: 192.0.2.11
hosts:
- hostname: host-2
  role: master
  networkConfig: {interfaces: [{name: eno1, ipv4: {enabled: true, address: [{ip: 192.0.2.11, prefix-length: 24}]}}]}
- hostname: nowhere
`)}
	var got []string
	for _, p := range mustLoad(t, s, Options{}).Config.Spec.Peers {
		got = append(got, fmt.Sprint(p.Name, " ", p.Role, " ", p.Addresses, map[bool]string{true: " unnamed"}[p.Unnamed]))
	}
	want := []string{"bootstrap bootstrap [192.0.2.9]", "host-2 master [192.0.2.11]", "host-2-unnamed master [192.0.2.10] unnamed"}
	testkit.Equal(t, want, got)
}

// On other systems than OpenShift there are no credentials of kubelet or of the installer to
// pull the agent's image with, and no MachineConfigs.
func TestOtherSystems(t *testing.T) {
	for os, want := range map[string]bool{ignition.OpenShift: true, ignition.FCOS: false, ignition.Flatcar: false} {
		c, list, err := Load(Sources{InstallConfig: File{Name: "install-config.yaml", Data: input("demo", managed, "").InstallConfig.Data}}, Options{OS: os})
		if err != nil {
			t.Fatal(list)
		}
		bundles, err := c.Bundles()
		testkit.Must(t, err)
		for _, b := range bundles {
			for _, u := range b.Units {
				if strings.Contains(u.Contents, "podman") && strings.Contains(u.Contents, "--authfile") != want {
					t.Errorf("%s, pool %s, %s: --authfile is there: %t", os, b.Role, u.Name, !want)
				}
			}
		}
		_, err = new(Renderer).Tree(c, Want{Formats: []Format{FormatMachineConfig}})
		if (err == nil) != want {
			t.Errorf("%s: MachineConfigs: %v", os, err)
		}
	}
}
