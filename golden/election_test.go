package golden

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// election is a cluster of real keepalived daemons with the files of vipgen preview for nodes
// of a case.
type election struct {
	*daemon.Cluster
	t    *testing.T
	vips []netip.Addr // of the group, in its order
}

// elect starts keepalived on the nodes of a case, which elect a holder of a group's first VIP.
func elect(t *testing.T, g daemon.Generation, caseName, group string, nodes ...string) election {
	t.Helper()
	c := clusterCase{name: caseName, dir: filepath.Join("cases", caseName)}
	r := c.result(t)
	members := map[string]daemon.Member{}
	for _, name := range nodes {
		n := c.facts(t, r, name)
		members[name] = daemon.Member{
			Addresses: n.Interfaces[0].Addresses,
			Link:      n.Interfaces[0].Name,
			Config:    r.previews[name][v1alpha1.KeepalivedConf[1:]],
		}
		if len(members[name].Config) == 0 {
			t.Fatalf("case %s has no keepalived.conf of %s", caseName, name)
		}
	}
	groups := r.cluster(t).Spec.Groups
	i := slices.IndexFunc(groups, func(g v1alpha1.Group) bool { return g.Name == group })
	return election{g.NewCluster(t, groups[i].VIPs[0], members), t, groups[i].VIPs}
}

// set writes a node's track file, as the agent does.
func (e election) set(node, term, value string) {
	e.t.Helper()
	e.WriteFile(node, v1alpha1.TrackDir+"/"+term, []byte(value+"\n"))
}

// awaitHolder waits until one node and no other holds the VIP.
func (e election) awaitHolder(want, why string) {
	e.t.Helper()
	e.await("the VIP on "+want+", as "+why, func() bool { return e.Holder() == want })
}

func (e election) await(what string, condition func() bool) {
	e.t.Helper()
	testkit.Await(e.t, what, condition, func() string { return fmt.Sprintf("it is on %q", e.Holders()) })
}

// TestDNSVIPMoves: the third VIP of old clusters is on a node whose CoreDNS answers, whichever
// node holds the API VIP (seed 002).
func TestDNSVIPMoves(t *testing.T) { daemon.EachGeneration(t, dnsVIPMoves) }

func dnsVIPMoves(t *testing.T, g daemon.Generation) {
	testkit.Live(t)
	nodes := []string{"master-0", "master-1"}
	e := elect(t, g, "openstack-dns-vip", "dns", nodes...)
	api := netip.MustParseAddr("10.0.0.5")
	e.set(nodes[0], "lb-path", "1")
	e.await("the API VIP on "+nodes[0], func() bool { return slices.Equal(e.HoldersOf(api), nodes[:1]) })
	for i, here := range []string{nodes[1], nodes[0], nodes[1]} {
		e.set(here, "dns", "1")
		e.set(nodes[i%2], "dns", "0")
		e.awaitHolder(here, "CoreDNS answers there alone")
	}
	e.await("the API VIP to have stayed on "+nodes[0], func() bool { return slices.Equal(e.HoldersOf(api), nodes[:1]) })
}

// TestHardCase33Label: the address of an IPv4 VIP has the label that OVN-Kubernetes filters by;
// that of an IPv6 VIP, which cannot have one, is deprecated, which OVN-Kubernetes skips as
// well.
func TestHardCase33Label(t *testing.T) { daemon.EachGeneration(t, label) }

func label(t *testing.T, g daemon.Generation) {
	e := elect(t, g, "openstack-dual-stack", "ingress", "worker-0-migrated", "worker-1-migrated")
	e.set("worker-0-migrated", "ingress-away", "0")
	e.awaitHolder("worker-0-migrated", "its router alone answers")
	e.await("the IPv6 VIP there", func() bool { return len(e.HoldersOf(e.vips[1])) == 1 })
	out := testkit.Run(t, e.Node("worker-0-migrated").Command(t.Context(), "ip", "-oneline", "address", "show"))
	want := map[netip.Addr]string{e.vips[0]: "scope global " + v1alpha1.VIPLabel, e.vips[1]: " deprecated "}
	for vip, words := range want {
		shown := false
		for line := range strings.Lines(string(out)) {
			shown = shown || strings.Contains(line, " "+vip.String()+"/") && strings.Contains(line, words)
		}
		if !shown {
			t.Errorf("%s should be shown with %q:\n%s", vip, words, out)
		}
	}
}
