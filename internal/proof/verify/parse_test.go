package verify_test

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/keepalived"
)

var sameAddresses = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// fed returns the expected configuration of a template executed with k.
func fed(t *testing.T, k *keepalived.Conf) *keepalivedconf.Config {
	t.Helper()
	c := &keepalivedconf.Config{RouterID: k.Node}
	for _, f := range k.TrackFiles {
		c.Files = append(c.Files, keepalivedconf.File{Name: f.Name, Path: f.Path, Weight: f.Points, Initial: f.Initial})
	}
	for _, g := range k.SyncGroups {
		c.SyncGroups = append(c.SyncGroups, keepalivedconf.SyncGroup{Name: g.Name, Members: g.Members, Tracks: tracks(g.Terms)})
	}
	for _, family := range slices.Sorted(maps.Keys(k.QuietGroups)) {
		c.Groups = append(c.Groups, netip.MustParseAddr(k.QuietGroups[family]))
	}
	for _, i := range k.Instances {
		seconds, err := strconv.ParseFloat(i.AdvertInterval, 64)
		testkit.Must(t, err)
		in := keepalivedconf.Instance{
			Name: i.Name, Version: i.Version, Interface: i.Interface, RouterID: i.RouterID, Priority: i.Priority,
			AdvertMS: int(seconds*1000 + 0.5), Password: i.Password, Source: i.Source, VIPs: []keepalivedconf.VIP{{Prefix: i.VIP}}, Tracks: tracks(i.Terms),
		}
		if i.Password != "" {
			in.AuthType = "PASS"
		}
		if i.QuietGroup != "" {
			in.Group = netip.MustParseAddr(i.QuietGroup)
		}
		for _, a := range i.Peers {
			p := keepalivedconf.Peer{Address: a}
			if i.OnLink {
				p.MinTTL = 255
			}
			if i.FullTTL {
				in.TTL = 255
			}
			in.Peers = append(in.Peers, p)
		}
		c.Instances = append(c.Instances, in)
	}
	return c
}

func tracks(terms []vrrp.Term) (out []keepalivedconf.Track) {
	for _, t := range terms {
		out = append(out, keepalivedconf.Track{File: t.Name, Weight: t.Points})
	}
	return out
}

// A rendered configuration parses to its input.
func TestParse(t *testing.T) {
	multicast := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {vrrp: {profile: custom, mode: multicast, advertInterval: 50ms}}\n"
	tests := map[string]*render.Cluster{
		"fast":               clusterOf(t, bareMetal, 3, ""),
		"classic":            clusterOf(t, bareMetal, 3, oldTimes),
		"multicast":          clusterOf(t, bareMetal, 3, multicast),
		"families together":  clusterOf(t, openStack, 3, ""),
		"one node":           clusterOf(t, bareMetal, 1, ""),
		"beside OpenShift's": clusterOf(t, `nutanix: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]}`, 3, ""),
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			setups, err := verify.Setups(c, verify.Options{})
			testkit.Must(t, err)
			for _, s := range setups {
				for _, n := range s.Nodes {
					got, err := verify.Parse(n.Conf)
					testkit.Must(testkit.In(t, n.Facts.Name), err)
					want := fed(t, keepalived.New(c.Config, n.Facts))
					if n.OpenShifts {
						want.RouterID = "" // left to keepalived
					}
					if diff := cmp.Diff(want, got, sameAddresses, cmpopts.IgnoreTypes(keepalivedconf.Statement{}, []keepalivedconf.Statement{})); diff != "" {
						t.Errorf("%s, %s, %s:\n%s", s.Group.Name, s.Stage, n.Facts.Name, diff)
					}
				}
			}
		})
	}
}

// FuzzParse: any text is refused or parsed without a panic, and a parsed configuration is
// evaluated or refused.
func FuzzParse(f *testing.F) {
	c := clusterOf(f, openStack, 3, "")
	s := setupOf(f, c, "api", "running")
	for _, n := range s.Nodes {
		f.Add(n.Conf)
	}
	in := setupOf(f, c, "ingress", "running")
	f.Add(in.Nodes[0].Conf)
	f.Fuzz(func(t *testing.T, text []byte) {
		two := s
		two.Nodes = []verify.Node{s.Nodes[0], s.Nodes[1]}
		two.Nodes[1].Conf = text
		proofs, err := two.Prove(nil)
		if err != nil {
			return
		}
		for _, p := range proofs {
			if len(p.Nodes) > len(two.Nodes) {
				t.Errorf("%d nodes in a proof", len(p.Nodes))
			}
		}
	})
}
