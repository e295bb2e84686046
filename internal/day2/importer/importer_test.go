package importer_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
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

// cases are the expected values of each source, taken from its files by hand: what is in packets,
// ports, and the images of keepalived, HAProxy and CoreDNS if they are not vipgen's.
var cases = []struct {
	name, platform string
	topology       v1alpha1.Topology
	networks, vrrp string
	groups         []string // name, virtual router ID, password and VIPs
	images         []string
}{
	{"baremetal", "baremetal", v1alpha1.TopologyHighlyAvailable, "192.0.2.0/24", "classic/unicast/v2/1s",
		[]string{"api 97 demo_api [192.0.2.5]", "ingress 51 demo_ing [192.0.2.7]"}, []string{
			"registry.example.com/keepalived@sha256:0000000000000000000000000000000000000000000000000000000000000002",
			"registry.example.com/haproxy@sha256:0000000000000000000000000000000000000000000000000000000000000003",
			"registry.example.com/coredns@sha256:0000000000000000000000000000000000000000000000000000000000000004"}},
	{"multicast", "ovirt", v1alpha1.TopologyHighlyAvailable, "10.1.0.0/24", "classic/multicast/v2/1s",
		[]string{"api 164 old_api_ [10.1.0.5]", "ingress 83 old_ingr [10.1.0.7]"}, nil},
	{"dual-stack", "baremetal", v1alpha1.TopologyHighlyAvailable, "192.0.2.0/24 2001:db8::/64", "classic/unicast/v2/1s",
		[]string{"api 18 dual_api [192.0.2.5 2001:db8::5]", "ingress 49 dual_ing [192.0.2.7 2001:db8::7]"}, nil},
	{"vsphere", "vsphere", v1alpha1.TopologyHighlyAvailable, "198.51.100.0/24", "classic/unicast/v2/1s",
		[]string{"api 216 vs_api_v [198.51.100.5]", "ingress 151 vs_ingre [198.51.100.7]"}, nil},
	{"arbiter", "baremetal", v1alpha1.TopologyHighlyAvailableArbiter, "203.0.113.0/24", "classic/unicast/v2/1s",
		[]string{"api 217 arb_api_ [203.0.113.5]", "ingress 216 arb_ingr [203.0.113.7]"},
		[]string{"registry.example.com/keepalived:4.20", "registry.example.com/haproxy:4.20", "registry.example.com/coredns:4.20"}},
}

// TestSameBehaviour loads the imported input, and compares what nodes run with the source.
func TestSameBehaviour(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, importCase(t, tt.name))
			s := c.Config.Spec
			testkit.Equal(t, tt.platform, s.Platform)
			testkit.Equal(t, tt.topology, s.Topology)
			testkit.Equal(t, tt.networks, strings.Trim(fmt.Sprint(s.MachineNetworks), "[]"))
			testkit.Equal(t, tt.vrrp, s.VRRP.Initial().String())
			testkit.Equal(t, v1alpha1.DefaultPorts, s.Ports)
			groups := lists.Map(s.Groups, func(g v1alpha1.Group) string {
				return fmt.Sprint(g.Name, " ", g.VirtualRouterID, " ", g.Password, " ", g.VIPs)
			})
			testkit.Equal(t, tt.groups, groups)
			want := render.DefaultImages(c.Version)
			if tt.images != nil {
				want.Keepalived, want.HAProxy, want.CoreDNS = tt.images[0], tt.images[1], tt.images[2]
			}
			testkit.Equal(t, want, c.Images)
		})
	}
}

// caseNames returns the cases, each once.
func caseNames() (out []string) {
	for _, c := range cases {
		out = append(out, c.name)
	}
	return out
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
