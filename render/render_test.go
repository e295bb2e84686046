package render

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
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
	testkit.Must(testkit.In(t, list), err)
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
	for _, tt := range []struct {
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
	} {
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
	for _, tt := range []struct {
		flag, spec, release string
		want                string
	}{
		{"", "", "", ""},
		{"", "", "4.16.3", "4.16"},
		{"", "4.15", "4.16.3", "4.15"},
		{"4.14", "4.15", "4.16.3", "4.14"},
		{"4.14", "", "", "4.14"},
	} {
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

// Virtual machines stall occasionally, so that the platform determines the profile unless the
// user does. The initial VRRP settings depend on the owner of the bootstrap host (hard case 23).
func TestStart(t *testing.T) {
	for _, tt := range []struct{ platform, spec, start, profile, why string }{
		{managed, "", "classic", "fast", "nodes of platform baremetal are taken for metal"},
		{userManaged, "", "", "fast", "baremetal"},
		{managed, "vrrp: {interoperable: false}", "", "fast", "baremetal"},
		{managed, "vrrp: {profile: classic}", "", "classic", ""},
		{managed, "vrrp: {profile: virtual}", "classic", "virtual", ""},
		{userManaged, "loadBalancer: {type: External}", "", "", ""},
		{vips("vsphere"), "", "classic", "virtual", "nodes of platform vsphere are virtual machines"},
		{vips("vsphere"), "vrrp: {profile: fast}", "classic", "fast", ""},
		{vips("vsphere"), "vrrp: {profile: custom, advertInterval: 100ms}", "classic", "custom", ""},
		{vips("openstack"), "", "classic", "virtual", "openstack"},
		{vips("nutanix"), "", "classic", "virtual", "nutanix"},
		{"ovirt: {api_vips: [192.0.2.2], ingress_vips: [192.0.2.3]}", "vrrp: {mode: multicast}", "classic", "virtual", "ovirt"},
		{"none: {}", "apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]", "", "fast", "nodes of platform none are taken for metal"},
		{"external: {}", "apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]", "", "fast", "external"},
	} {
		c := mustLoad(t, input("demo", tt.platform, tt.spec), Options{})
		s, in := c.Config.Spec, testkit.In(t, tt.platform, tt.spec)
		start, password := "", "demo_api"
		if s.VRRP.Start != nil {
			start = string(s.VRRP.Start.Profile)
		}
		if tt.profile == "" {
			password = ""
		}
		testkit.Equal(in, [3]string{tt.start, tt.profile, password}, [3]string{start, string(s.VRRP.Target.Profile), s.Groups[0].Password})
		testkit.Contains(in, c.ProfileReason, tt.why)
		testkit.Equal(in, tt.why == "", c.ProfileReason == "")
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
	files, err := c.InstallDir(Want{})
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
		"spec.vrrp.profile": true, "spec.vrrp.profile.x": true, "spec.vrrp": true, "spec": true,
		"spec.vrrp.profiles": false, "spec.vrrp.mode": false, "spec.ports.api": false,
	} {
		testkit.Equal(testkit.In(t, field), want, refused(list, field))
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
		c := mustLoad(t, input("demo", managed, ""), Options{OS: os})
		bundles, err := c.Bundles()
		testkit.Must(t, err)
		for _, b := range bundles {
			for _, u := range b.Units {
				if strings.Contains(u.Contents, "podman") && strings.Contains(u.Contents, "--authfile") != want {
					t.Errorf("%s, pool %s, %s: --authfile is there: %t", os, b.Role, u.Name, !want)
				}
			}
		}
		_, err = c.Tree(Want{Formats: []Format{FormatMachineConfig}})
		testkit.Equal(testkit.In(t, os, "has MachineConfigs", err), want, err == nil)
	}
}

// TestImagesOfAnotherRelease: images with a known release, and others.
func TestImagesOfAnotherRelease(t *testing.T) {
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000001"
	rel := &Release{Version: "4.19.3", Images: map[string]string{tagKeepalived: "r/k" + digest, tagHAProxy: "r/h" + digest, tagCoreDNS: "r/c" + digest}}
	for _, tt := range []struct {
		version, images string
		rel             *Release
		want            string // fields named by a warning
	}{
		{"4.18", "release: 4.18.3, keepalived: r/k" + digest, nil, ""},
		{"4.19", "release: 4.18.3, keepalived: r/k" + digest, nil, "spec.images.release"},
		{"4.19", "release: 4.18.3", nil, ""},                       // nothing is pinned
		{"4.19", "release: 4.18, agent: r/a:4.18", nil, ""},        // the agent is vipgen's
		{"", "release: 4.18.3, keepalived: r/k" + digest, nil, ""}, // any release
		{"4.19", "keepalived: 'r/k:4.18', haproxy: 'r:5000/h:4.19', coredns: 'r/c:v1.12'", nil, "spec.images.keepalived"},
		{"4.19", "keepalived: 'r/k:4.18.7-1', haproxy: 'r/h:2.8'", nil, "spec.images.keepalived"},
		{"4.19", "haproxy: 'r.example.com:418/h'", nil, ""}, // a port, no tag
		{"4.19", "keepalived: r/k" + digest, nil, ""},       // unknown
		{"4.19", "keepalived: r/k" + digest + ", haproxy: r/x" + digest, rel, "spec.images.haproxy"},
		{"4.18", "", rel, "--release-info"},
		{"", "", rel, ""},
	} {
		files := input("demo", "none: {}", "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7], images: {"+tt.images+"}")
		_, list, err := Load(files, Options{OpenShiftVersion: tt.version, Release: tt.rel})
		testkit.Must(testkit.In(t, list), err)
		var fields []string
		for _, p := range list {
			if p.Code == problem.OtherRelease {
				fields = append(fields, p.Field)
				if at := fmt.Sprint(p.File, p.Line > 0); p.Severity != problem.Warning || strings.HasPrefix(p.Field, "spec.") && at != "vipgen.yamltrue" {
					t.Errorf("%v", p)
				}
			}
		}
		testkit.Equal(testkit.In(t, tt.version, tt.images, list), tt.want, strings.Join(fields, " "))
	}
}

// Networks of hosts stand where the first of their family did: the order decides the primary family.
func TestReplaceFamily(t *testing.T) {
	for _, tt := range []struct{ list, found, want string }{
		{"192.0.2.0/24 2001:db8::/64", "198.51.100.0/24", "198.51.100.0/24 2001:db8::/64"},
		{"2001:db8::/64 192.0.2.0/24 203.0.113.0/24", "198.51.100.0/24", "2001:db8::/64 198.51.100.0/24"},
		{"192.0.2.0/24 203.0.113.0/24 2001:db8::/64", "2001:db8:1::/64 2001:db8:2::/64", "192.0.2.0/24 203.0.113.0/24 2001:db8:1::/64 2001:db8:2::/64"},
		{"192.0.2.0/24", "2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
	} {
		networks := func(text string) []netip.Prefix { return lists.Map(strings.Fields(text), netip.MustParsePrefix) }
		testkit.Equal(t, tt.want, lists.Join(replaceFamily(networks(tt.list), networks(tt.found)), " "))
	}
}

// Objects without machine networks, whose hosts have DHCP: the rules of families apply to the
// other networks.
func TestFamiliesOfObjects(t *testing.T) {
	const (
		four, six = "[192.0.2.5], ingressVIPs: [192.0.2.7]", "['2001:db8::5'], ingressVIPs: ['2001:db8::7']"
		both      = "[172.30.0.0/16, 'fd02::/112'], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: 'fd01::/48', hostPrefix: 64}]"
		turned    = "['fd02::/112', 172.30.0.0/16], clusterNetwork: [{cidr: 'fd01::/48', hostPrefix: 64}, {cidr: 10.128.0.0/14, hostPrefix: 23}]"
	)
	for _, tt := range []struct {
		vips, services, version string
		refused                 bool
	}{
		{four, both, "", false},
		{four, "[172.30.0.0/16, 'fd02::/112'], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}]", "", true},
		{six, both, "", true},
		{six, both, "4.19", false},
		{six, turned, "4.12", true},
		{six, turned, "4.13", false},
	} {
		text := "apiVersion: extensions.hive.openshift.io/v1beta1\nkind: AgentClusterInstall\nmetadata: {name: demo}\nspec:\n  clusterDeploymentRef: {name: demo}\n" +
			"  platformType: BareMetal\n  provisionRequirements: {controlPlaneAgents: 3}\n  apiVIPs: " + strings.Replace(tt.vips, ", ", "\n  ", 1) +
			"\n  networking: {serviceNetwork: " + tt.services + "}\n---\n" +
			"apiVersion: hive.openshift.io/v1\nkind: ClusterDeployment\nmetadata: {name: demo}\nspec: {clusterName: demo, baseDomain: example.com}\n"
		_, list, _ := Load(Sources{InstallConfig: File{Name: "cluster.yaml", Data: []byte(text)}}, Options{OpenShiftVersion: tt.version})
		refused := strings.Contains(list.Error(), "[family-order]")
		testkit.Equal(testkit.In(t, tt.vips, tt.services, tt.version, list.Error()), tt.refused, refused && list.Err() != nil)
	}
}

//go:embed testdata/preview.yaml
var previewConfig string

// TestPreviewOfOpenShift: bgpVIPConfig is read as it is, and its password reaches nothing.
func TestPreviewOfOpenShift(t *testing.T) {
	vip := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {announce: bgp}\n"
	c, list, err := Load(Sources{InstallConfig: File{Name: "ic.yaml", Data: []byte(previewConfig)}, VIPConfig: &File{Name: "vipgen.yaml", Data: []byte(vip)}}, Options{})
	testkit.Must(t, err)
	text := ""
	for _, p := range list {
		text += p.String() + "\n"
	}
	testkit.Contains(t, text, "ic.yaml:14:60: warning: platform.baremetal.bgpVIPConfig.peers[0].password", "the file /etc/vipgen/bgp/192.0.2.1 on the nodes")
	testkit.Lacks(t, text, "hush")
	bundles, err := c.Bundles()
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, b := range bundles {
		for _, f := range b.Files {
			seen[f.Path] = true
			testkit.Equal(testkit.In(t, f.Path, "has the password"), false, bytes.Contains(f.Contents, []byte("hush")))
		}
	}
	for _, path := range []string{"/etc/kubernetes/manifests/bgp.yaml", "/etc/kubernetes/manifests/keepalived.yaml"} { // the latter instead of OpenShift's
		testkit.Equal(testkit.In(t, path), true, seen[path])
	}
	b := &c.Config.Spec.BGP
	var got []string
	for _, p := range b.Peers { // those of single hosts first; the last two of these with names of the draft
		got = append(got, fmt.Sprint(p.Address, p.Nodes.Names, p.BFD.On(), p.BFD.Interval, p.Multihop, p.HoldTime, " ", p.PasswordFile))
	}
	testkit.Equal(t, []string{
		"192.0.2.65 [master-2] false 0s 255 9s ",
		"192.0.2.66 [master-2] true 300ms 0 1m0s ",
		"192.0.2.67 [master-2] false 0s 255 9s ",
		"192.0.2.1 [master-0 master-1] true 300ms 0 1m30s /etc/vipgen/bgp/192.0.2.1",
	}, got)
}

// TestPlatforms compares code that cannot read the table of platforms with it: agents, which do
// not import assets, the reader of each platform's fields, and text.
func TestPlatforms(t *testing.T) {
	var virtual []string
	readme := testkit.ReadFile(t, "../README.md")
	for _, p := range assets.Platforms {
		if p.Kind != assets.OnPremises {
			continue
		}
		testkit.Equal(testkit.In(t, p.Name), p.HasVIPs(), (&v1alpha1.ClusterConfigSpec{Platform: p.Name}).OperatorHasVIPs())
		testkit.Equal(testkit.In(t, "README.md names", p.Name), true, bytes.Contains(readme, []byte("`"+p.Name+"`")))
		if p.HasVIPs() {
			text := vips(p.Name)
			if p.Name == "ovirt" {
				text = strings.NewReplacer("apiVIPs", "api_vips", "ingressVIPs", "ingress_vips").Replace(text)
			}
			testkit.Equal(testkit.In(t, p.Name), "192.0.2.2", mustLoad(t, input("demo", text, ""), Options{}).Config.Spec.Groups[0].VIPs[0].String())
		}
		if p.Virtual {
			virtual = append(virtual, p.Name)
		}
	}
	slices.Sort(virtual)
	for file, text := range map[string]string{
		"../api/v1alpha1/vipconfig.go": `By default "virtual" on platforms ([a-z, ]+), whose`,
		"../cmd/cli/init.go":           `the default on ([a-z, ]+), as fast is elsewhere`,
	} {
		m := regexp.MustCompile(text).FindSubmatch(testkit.ReadFile(t, file))
		if m == nil {
			t.Fatalf("%s: no %s", file, text)
		}
		got := strings.Split(strings.Replace(string(m[1]), " and ", ", ", 1), ", ")
		slices.Sort(got)
		testkit.Equal(testkit.In(t, file), virtual, got)
	}
}

// TestFormats: each output format is rendered and documented.
func TestFormats(t *testing.T) {
	c := mustLoad(t, input("demo", managed, ""), Options{})
	page := testkit.ReadFile(t, "../docs/output.md")
	for _, f := range Formats() {
		if files, err := c.Tree(Want{Formats: []Format{f}}); err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", f, len(files), err)
		}
		testkit.Equal(testkit.In(t, "docs/output.md names", f), true, bytes.Contains(page, []byte("`"+string(f)+"`")))
	}
}

// The default ingress controller serves appsDomain, unless another one or a record does.
func TestAppsDomain(t *testing.T) {
	for spec, want := range map[string]bool{
		"appsDomain: apps.example.net": true,
		"appsDomain: apps.example.net, ingress: [{name: a, vips: [192.0.2.9], domains: [apps.example.net]}]":      false,
		"appsDomain: apps.example.net, dns: {records: [{name: '*.apps.example.net', addresses: [198.51.100.1]}]}": false,
	} {
		groups := mustLoad(t, input("demo", userManaged, spec), Options{}).Config.Spec.Groups
		i := slices.IndexFunc(groups, func(g v1alpha1.Group) bool { return g.Name == "ingress" })
		testkit.Equal(testkit.In(t, spec), want, slices.Contains(groups[i].Domains, "apps.example.net"))
	}
}
