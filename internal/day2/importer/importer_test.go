package importer_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

var update = flag.Bool("update", false, "write the expected output; then read it")

// secret stands for the secrets in every source.
const secret = "hunter2"

// sourceFiles reads a case as `vipgen import` does.
func sourceFiles(t testing.TB, name string) []render.File {
	t.Helper()
	root := filepath.Join("testdata", name)
	var out []render.File
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel("testdata", p)
		if err != nil || !importer.Relevant(filepath.ToSlash(rel)) {
			return err
		}
		data, err := os.ReadFile(p)
		out = append(out, render.File{Name: filepath.ToSlash(rel), Data: data})
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatal("no files", err)
	}
	return out
}

func importCase(t testing.TB, name string) *importer.Result {
	t.Helper()
	r, list := importer.Read(sourceFiles(t, name), importer.Given{})
	if r == nil {
		t.Fatalf("%s:\n%s", name, list.Error())
	}
	return r
}

// read imports valid files.
func read(t testing.TB, files []render.File, given importer.Given) *importer.Result {
	t.Helper()
	r, list := importer.Read(files, given)
	if r == nil {
		t.Fatal(list.Error())
	}
	return r
}

// load renders the imported input.
func load(t testing.TB, r *importer.Result) *render.Cluster {
	t.Helper()
	c, _, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: importer.InstallConfigName, Data: r.InstallConfig},
		VIPConfig:     &render.File{Name: importer.VIPConfigName, Data: r.VIPConfig},
	}, render.Options{})
	testkit.Must(t, err)
	return c
}

// conf is the compared part of a keepalived.conf: the content of advertisements.
type conf struct {
	VIP      string
	ID       int
	Version  int
	AdvertMS int
	Unicast  bool
	Peers    string
	Password string // truncated as in advertisements
}

var baremetalImages = v1alpha1.Images{
	Keepalived: "registry.example.com/keepalived@sha256:0000000000000000000000000000000000000000000000000000000000000002",
	HAProxy:    "registry.example.com/haproxy@sha256:0000000000000000000000000000000000000000000000000000000000000003",
	CoreDNS:    "registry.example.com/coredns@sha256:0000000000000000000000000000000000000000000000000000000000000004",
}

// cases are the expected values of each source, taken from its files by hand.
var cases = []struct {
	name     string
	platform string
	topology v1alpha1.Topology
	networks string
	// one node of the source, with its own address and its peers.
	role      string
	addresses []string
	peers     []string
	want      []conf
	haproxy   int // 0: the node runs none
	ready     int
	images    v1alpha1.Images // of keepalived, HAProxy and CoreDNS; empty: vipgen's
}{
	{name: "baremetal", platform: "baremetal", topology: v1alpha1.TopologyHighlyAvailable, networks: "192.0.2.0/24",
		role: "master", addresses: []string{"192.0.2.20/24"}, peers: []string{"192.0.2.21", "192.0.2.22"},
		want: []conf{
			{"192.0.2.5", 97, 2, 1000, true, "192.0.2.21 192.0.2.22", "demo_api"},
			{"192.0.2.7", 51, 2, 1000, true, "192.0.2.21 192.0.2.22", "demo_ing"},
		},
		haproxy: 9445, ready: 9444,
		images: baremetalImages},
	{name: "baremetal", platform: "baremetal", topology: v1alpha1.TopologyHighlyAvailable, networks: "192.0.2.0/24",
		role: "worker", addresses: []string{"192.0.2.30/24"}, peers: []string{"192.0.2.31"},
		// Its own keyword is listed as lost.
		want: []conf{{"192.0.2.7", 51, 2, 1000, true, "192.0.2.31", "demo_ing"}}, images: baremetalImages},
	{name: "multicast", platform: "ovirt", topology: v1alpha1.TopologyHighlyAvailable, networks: "10.1.0.0/24",
		role: "master", addresses: []string{"10.1.0.20/24"}, peers: []string{"10.1.0.21"},
		want:    []conf{{"10.1.0.5", 164, 2, 1000, false, "", "old_api_"}, {"10.1.0.7", 83, 2, 1000, false, "", "old_ingr"}},
		haproxy: 9445, ready: 9444},
	{name: "dual-stack", platform: "baremetal", topology: v1alpha1.TopologyHighlyAvailable, networks: "192.0.2.0/24 2001:db8::/64",
		role: "master", addresses: []string{"192.0.2.20/24", "2001:db8::20/64"}, peers: []string{"192.0.2.21,2001:db8::21", "192.0.2.22,2001:db8::22"},
		want: []conf{
			{"192.0.2.5", 18, 2, 1000, true, "192.0.2.21 192.0.2.22", "dual_api"},
			{"2001:db8::5", 18, 3, 1000, true, "2001:db8::21 2001:db8::22", ""},
			{"192.0.2.7", 49, 2, 1000, true, "192.0.2.21 192.0.2.22", "dual_ing"},
			{"2001:db8::7", 49, 3, 1000, true, "2001:db8::21 2001:db8::22", ""},
		},
		haproxy: 9445, ready: 9444},
	{name: "vsphere", platform: "vsphere", topology: v1alpha1.TopologyHighlyAvailable, networks: "198.51.100.0/24",
		role: "master", addresses: []string{"198.51.100.20/24"}, peers: []string{"198.51.100.21"},
		want:    []conf{{"198.51.100.5", 216, 2, 1000, true, "198.51.100.21", "vs_api_v"}, {"198.51.100.7", 151, 2, 1000, true, "198.51.100.21", "vs_ingre"}},
		haproxy: 9445, ready: 9444},
	{name: "arbiter", platform: "baremetal", topology: v1alpha1.TopologyHighlyAvailableArbiter, networks: "203.0.113.0/24",
		role: "arbiter", addresses: []string{"203.0.113.22/24"}, peers: []string{"203.0.113.20", "203.0.113.21"},
		want:    nil, // it would not receive from nodes with OpenShift's own (hard case 32)
		haproxy: 9445, ready: 9444,
		images: v1alpha1.Images{Keepalived: "registry.example.com/keepalived:4.20", HAProxy: "registry.example.com/haproxy:4.20", CoreDNS: "registry.example.com/coredns:4.20"}},
}

// TestSameBehaviour renders the imported input and compares packets, ports and images with the
// source, by values taken from it by hand.
func TestSameBehaviour(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name+"-"+tt.role, func(t *testing.T) {
			r := importCase(t, tt.name)
			c := load(t, r)
			if c.Config.Spec.Platform != tt.platform || c.Config.Spec.Topology != tt.topology || c.Config.Spec.VRRP.Start != nil {
				t.Errorf("platform %s, topology %s, start %v", c.Config.Spec.Platform, c.Config.Spec.Topology, c.Config.Spec.VRRP.Start)
			}
			testkit.Equal(t, tt.networks, strings.Trim(fmt.Sprint(c.Config.Spec.MachineNetworks), "[]"))
			files := preview(t, c, tt.role, tt.addresses, tt.peers)
			rendered := readRendered(t, files[v1alpha1.KeepalivedConf])
			testkit.Equal(t, tt.want, rendered)
			if tt.haproxy != 0 {
				checkHAProxy(t, files[v1alpha1.HAProxyConf], tt.haproxy, tt.ready)
			} else if files[v1alpha1.HAProxyConf] != "" {
				t.Error("HAProxy on a node that had none")
			}
			checkImages(t, c, tt.images)
		})
	}
}

// preview returns the configuration of a node of the role.
func preview(t *testing.T, c *render.Cluster, role string, addresses, peers []string) map[string]string {
	t.Helper()
	n := &v1alpha1.Node{Name: "self", Role: role, BootstrapGone: true}
	iface := v1alpha1.Interface{Name: "br-ex", DefaultRoute4: true, DefaultRoute6: true}
	for _, a := range addresses {
		iface.Addresses = append(iface.Addresses, netip.MustParsePrefix(a))
	}
	n.Interfaces = []v1alpha1.Interface{iface}
	for i, list := range peers {
		p := v1alpha1.Peer{Name: fmt.Sprintf("peer-%d", i), Role: role}
		if role == v1alpha1.RoleArbiter {
			p.Role = v1alpha1.RoleMaster
		}
		for a := range strings.SplitSeq(list, ",") {
			p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
		}
		n.Peers = append(n.Peers, p)
	}
	files, err := render.Preview(c.Config, n)
	testkit.Must(t, err)
	out := map[string]string{}
	for _, f := range files {
		out[f.Path] = string(f.Data)
	}
	return out
}

func readRendered(t *testing.T, text string) []conf {
	t.Helper()
	parsed, err := verify.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var out []conf
	for _, i := range parsed.Instances {
		var peers []string
		for _, p := range i.Peers {
			peers = append(peers, p.Address.String())
		}
		out = append(out, conf{i.VIP().Addr().String(), i.RouterID, i.Version, i.AdvertMS, len(peers) > 0, strings.Join(peers, " "), i.Password})
	}
	return out
}

func checkHAProxy(t *testing.T, text string, port, ready int) {
	t.Helper()
	testkit.Contains(t, text, fmt.Sprintf("    bind 0.0.0.0:%d", port), fmt.Sprintf("    bind 127.0.0.1:%d", ready), ":6443\n")
}

func checkImages(t *testing.T, c *render.Cluster, want v1alpha1.Images) {
	t.Helper()
	usual := render.DefaultImages(c.Version)
	for _, i := range [][3]string{{want.Keepalived, usual.Keepalived, c.Images.Keepalived}, {want.HAProxy, usual.HAProxy, c.Images.HAProxy}, {want.CoreDNS, usual.CoreDNS, c.Images.CoreDNS}} {
		expected := i[0]
		if expected == "" {
			expected = i[1]
		}
		if i[2] != expected {
			t.Errorf("image %s, want %s", i[2], expected)
		}
	}
}

// caseNames returns the cases, each once.
func caseNames() []string {
	var out []string
	for _, c := range cases {
		out = append(out, c.name)
	}
	return slices.Compact(out)
}

// TestExpected compares with files that were reviewed line by line.
func TestExpected(t *testing.T) {
	for _, name := range caseNames() {
		t.Run(name, func(t *testing.T) {
			r := importCase(t, name)
			report, err := json.MarshalIndent(r, "", "  ")
			testkit.Must(t, err)
			for file, got := range map[string][]byte{"install-config.yaml": r.InstallConfig, "vipgen.yaml": r.VIPConfig, "report.json": append(report, '\n')} {
				testkit.Kept(t, filepath.Join("testdata", "expected", name, file), got, *update)
			}
		})
	}
}

// problemsOf returns the report of files that cannot be imported.
func problemsOf(t *testing.T, files []render.File, given importer.Given) problem.List {
	t.Helper()
	r, list := importer.Read(files, given)
	if r != nil || list.Err() == nil {
		t.Errorf("imported: %v", list)
	}
	return list
}
