package golden

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// importedSource reads a case of the importer.
func importedSource(t *testing.T, name string) []render.File {
	t.Helper()
	var out []render.File
	err := filepath.WalkDir(filepath.Join("../internal/day2/importer/testdata", name), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !importer.Relevant(filepath.ToSlash(p)) {
			return err
		}
		data, err := os.ReadFile(p)
		out = append(out, render.File{Name: filepath.ToSlash(p), Data: data})
		return err
	})
	testkit.Must(t, err)
	return out
}

// importedNode renders the imported input for a control-plane node at an address with one peer.
func importedNode(t *testing.T, source []render.File, self netip.Prefix, peer netip.Addr, link string) []byte {
	t.Helper()
	r, list := importer.Read(source, importer.Given{})
	if r == nil {
		t.Fatal(list.Error())
	}
	c, list, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: importer.InstallConfigName, Data: r.InstallConfig},
		VIPConfig:     &render.File{Name: importer.VIPConfigName, Data: r.VIPConfig},
	}, render.Options{})
	if err != nil {
		t.Fatal(list.Error())
	}
	files, err := render.Preview(c.Config, &v1alpha1.Node{Name: "new", Role: v1alpha1.RoleMaster, BootstrapGone: true,
		Interfaces: []v1alpha1.Interface{{Name: link, DefaultRoute4: true, DefaultRoute6: true, Addresses: []netip.Prefix{self}}},
		Peers:      []v1alpha1.Peer{{Name: "old", Role: v1alpha1.RoleMaster, Addresses: []netip.Addr{peer}}}})
	testkit.Must(t, err)
	at := slices.IndexFunc(files, func(f render.OutputFile) bool { return f.Path == v1alpha1.KeepalivedConf })
	return files[at].Data
}

// TestImportedBesideItsSource: a node with the imported configuration and one with the source's
// own keepalived.conf form one group, as during a rollout of MachineConfigs: one of them holds
// the VIP. The healthier one gets it, and the other one when it dies.
func TestImportedBesideItsSource(t *testing.T) {
	tests := []struct {
		name, conf, link, old, new, vip string
		terms                           []string
	}{
		{"baremetal", "master-0/etc/keepalived/keepalived.conf", "br-ex", "192.0.2.20/24", "192.0.2.21/24", "192.0.2.5", []string{"lb-path", "lb-or-api"}},
		{"multicast", "node/keepalived.conf", "ens3", "10.1.0.20/24", "10.1.0.21/24", "10.1.0.5", []string{"lb-path", "lb-or-api"}},
		{"dual-stack", "master-0/etc/keepalived/keepalived.conf", "br-ex", "192.0.2.20/24", "192.0.2.21/24", "192.0.2.5", []string{"lb-path", "lb-or-api"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source := importedSource(t, tt.name)
			at := slices.IndexFunc(source, func(f render.File) bool { return strings.HasSuffix(f.Name, tt.name+"/"+tt.conf) })
			old, new := netip.MustParsePrefix(tt.old), netip.MustParsePrefix(tt.new)
			vip := netip.MustParseAddr(tt.vip)
			e := election{daemon.NewCluster(t, vip, map[string]daemon.Member{
				"old": {Addresses: []netip.Prefix{old}, Link: tt.link, Config: source[at].Data},
				"new": {Addresses: []netip.Prefix{new}, Link: tt.link, Config: importedNode(t, source, new, old.Addr(), tt.link)},
			}), t, []netip.Addr{vip}}
			e.Holder()
			for _, term := range tt.terms {
				e.set("new", term, "1")
			}
			e.awaitHolder("new", "its load balancer is healthy, and the scripts of the other fail")
			e.Crash("new")
			e.awaitHolder("old", "the other died")
			e.Start("new")
			e.awaitHolder("new", "it returned, and is healthier")
			for _, term := range tt.terms {
				e.set("new", term, "0")
			}
			e.Stop("new")
			e.awaitHolder("old", "the other was stopped")
		})
	}
}

// TestApartFromItsSource: differences that the importer marks as separating nodes do so: both
// hold the VIP.
func TestApartFromItsSource(t *testing.T) {
	const pass = "    authentication {\n        auth_type PASS\n        auth_pass demo_api_vip\n    }\n"
	tests := map[string]struct{ old, new string }{
		"its own password":  {"auth_pass demo_api_vip", "auth_pass other"},
		"no authentication": {pass, ""},
		"besides":           {"192.0.2.5/32\n", "192.0.2.5/32\n192.0.2.17/32\n"},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			source := importedSource(t, "baremetal")
			at := slices.IndexFunc(source, func(f render.File) bool {
				return strings.HasSuffix(f.Name, "baremetal/master-0/etc/keepalived/keepalived.conf")
			})
			text := string(source[at].Data)
			if !strings.Contains(text, tt.old) {
				t.Fatalf("no %q", tt.old)
			}
			source[at].Data = []byte(strings.Replace(text, tt.old, tt.new, 1))
			r, list := importer.Read(source, importer.Given{})
			if r == nil {
				t.Fatal(list.Error())
			}
			if !slices.ContainsFunc(r.Lost, func(l importer.Loss) bool {
				return l.Apart && strings.Contains(l.What, what) && strings.Contains(l.What, "API")
			}) {
				t.Errorf("not marked: %+v", r.Lost)
			}
			old, new := netip.MustParsePrefix("192.0.2.20/24"), netip.MustParsePrefix("192.0.2.21/24")
			vip := netip.MustParseAddr("192.0.2.5")
			e := election{daemon.NewCluster(t, vip, map[string]daemon.Member{
				"old": {Addresses: []netip.Prefix{old}, Link: "br-ex", Config: source[at].Data},
				"new": {Addresses: []netip.Prefix{new}, Link: "br-ex", Config: importedNode(t, source, new, old.Addr(), "br-ex")},
			}), t, []netip.Addr{vip}}
			e.set("new", "lb-path", "1")
			// Two nodes that receive each other's advertisements are both holders for one
			// interval at most.
			var since time.Time
			e.await("split brain for five adverts", func() bool {
				switch {
				case len(e.Holders()) != 2:
					since = time.Time{}
				case since.IsZero():
					since = time.Now()
				}
				return !since.IsZero() && time.Since(since) > 5*time.Second
			})
		})
	}
}
