package lab

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/companion/externallb"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/render"
)

// external and external6 are the addresses of the external load balancer, for the API and for
// ingress.
var (
	external  = netip.MustParseAddr("192.0.2.240")
	external6 = netip.MustParseAddr("2001:db8::240")
)

// asked is the path of requests: not /readyz, which an API server that shuts down answers with
// 500 itself.
const asked = "/version"

// The demo's input after docs/external-lb.md, step 3.
var (
	movedInstall = strings.NewReplacer(`192.0.2.5, "2001:db8::5"`, `192.0.2.240, "2001:db8::240"`, `192.0.2.6, "2001:db8::6"`, `192.0.2.240, "2001:db8::240"`).Replace(demo)
	movedVipgen  = strings.Replace(vipgenYAML, "apiServer:\n    local: AllNodes", "loadBalancer:\n    type: External", 1)
)

// balancerChange is a cluster that changes its load balancer node by node.
type balancerChange struct {
	*cluster
	exchanged []*exchanged
	balancer  *daemon.Process
}

// TestMoveToExternalLoadBalancer moves a cluster from vipgen's load balancer on its nodes to an
// external one and back, as in docs/external-lb.md, under the load of one client of the
// external address, and of another one of the API VIP for as long as nodes hold it.
func TestMoveToExternalLoadBalancer(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	before, moved := load(t, demo), loadWith(t, movedInstall, movedVipgen)
	m := &balancerChange{cluster: newClusterOf(t, Config{Cluster: before, Plan: planOf(3, 1)})}
	inCluster, outside := trees(t, before), trees(t, moved)
	m.exchanged = m.exchangedNodes(inCluster)
	m.check(t)
	awaitWell(t, m.Cluster)

	m.balance(t)
	client := m.startProbeOf(t, external, asked, probe.LiveEvery)
	seen := m.observeAt(asked)
	m.change(inPool(m.exchanged, v1alpha1.RoleWorker)[0], outside)
	// In any other order the VIP would move at least as often.
	left := inPool(m.exchanged, v1alpha1.RoleMaster)
	for len(left) > 1 {
		h := m.holder(t, api)
		at := slices.IndexFunc(left, func(x *exchanged) bool { return x.node == h })
		if at < 0 {
			t.Fatalf("%s holds %v", h.Name, api)
		}
		m.change(left[at], outside)
		left = slices.Delete(left, at, at+1)
	}
	m.holder(t, api)
	seen.settles(t)
	seen.ends(t, "to the external load balancer: the API VIP, until its last holder changes", handover, 0)
	m.change(left[0], outside)
	m.outside(t)

	for _, n := range m.nodes {
		m.patch("/api/v1/nodes/"+n.Name, `{"metadata":{"annotations":{"vipgen.io/vrrp":null}}}`)
	}
	masters := inPool(m.exchanged, v1alpha1.RoleMaster)
	m.change(masters[0], inCluster)
	m.holder(t, api) // the first holder
	seen = m.observeAt(asked)
	for _, x := range append(masters[1:], inPool(m.exchanged, v1alpha1.RoleWorker)...) {
		m.change(x, inCluster)
	}
	m.check(t)
	awaitWell(t, m.Cluster)
	m.resolves(t, "192.0.2.5", "2001:db8::5", "192.0.2.6", "2001:db8::6")
	seen.settles(t)
	seen.ends(t, "back: the API VIP, from its first holder on", 0, 0)
	client.answers(t, 100)
	client.expect(t, 0)
}

// trees returns the files and units of nodes of each pool.
func trees(t *testing.T, r *render.Cluster) map[string]tree {
	t.Helper()
	bundles, err := r.Bundles()
	testkit.Must(t, err)
	out := map[string]tree{}
	for _, b := range bundles {
		files := tree{}
		for _, f := range b.Files {
			files[f.Path] = string(f.Contents)
		}
		for _, u := range b.Units {
			files[host.UnitDir+"/"+u.Name] = u.Contents
		}
		out[b.Role] = files
	}
	return out
}

// balance starts the external load balancer with the haproxy.cfg that vipgen renders for it
// while the nodes still balance.
func (m *balancerChange) balance(t *testing.T) {
	t.Helper()
	o := externallb.Options{APIVIPs: []netip.Addr{external, external6}, IngressVIPs: []netip.Addr{external, external6}}
	for _, n := range m.nodes {
		o.Nodes = append(o.Nodes, v1alpha1.Peer{Name: n.Name, Role: n.Role, Addresses: addrs(n.OwnAddresses())})
	}
	plan, problems := externallb.Load(render.Sources{
		InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(demo)},
		VIPConfig:     &render.File{Name: "vipgen.yaml", Data: []byte(vipgenYAML)},
	}, render.Options{}, o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	files, err := plan.Files(externallb.Want{Format: render.FormatFiles})
	testkit.Must(t, err)
	h := daemon.NewHost(t, daemon.AddNode(t, m.Network(), "balancer", external.String()+"/24", external6.String()+"/64"))
	const conf = "/etc/haproxy/haproxy.cfg"
	for _, f := range files {
		if strings.HasSuffix(f.Path, conf) {
			h.Write(conf, f.Data)
		}
	}
	m.balancer = h.Start(nil, "haproxy", "-W", "-db", "-f", conf)
	testkit.Await(t, "the API at the external address", func() bool {
		out, err := m.run("curl", "-sk", "--max-time", "2", "https://"+external.String()+":6443/readyz")
		return err == nil && out == "ok"
	})
}

// serves reports whether the external load balancer sends connections to a node's API server.
func (m *balancerChange) serves(n *exchanged) bool {
	out := m.balancer.Output()
	return strings.LastIndex(out, "Server api/"+n.Name+" is UP") >= strings.LastIndex(out, "Server api/"+n.Name+" is DOWN")
}

// change installs the rendered files of a node's pool, and reboots the node.
func (m *balancerChange) change(x *exchanged, to map[string]tree) {
	m.t.Helper()
	x.give(to[x.Role])
	x.runsManifests()
	x.reboots()
	testkit.Await(m.t, "the external load balancer to use "+x.Name, func() bool { return m.serves(x) })
}

// outside checks that nothing of the load balancer is left on the nodes, and that all of them
// resolve the cluster's names to the external one.
func (m *balancerChange) outside(t *testing.T) {
	t.Helper()
	for _, n := range m.nodes {
		n.check(t)
		for _, vip := range append(slices.Clone(m.vips), external, external6) {
			if n.holds(vip) {
				t.Errorf("%s holds %v", n.Name, vip)
			}
		}
		if n.runs("keepalived") || n.runs("haproxy") {
			t.Errorf("%s runs a pod of the load balancer", n.Name)
		}
	}
	m.resolves(t, external.String(), external6.String(), external.String(), external6.String())
	testkit.Await(t, "a route at the external address", func() bool {
		out, err := m.run("curl", "-s", "--max-time", "2", "-H", "Host: console.apps."+domain, "http://"+external.String()+"/")
		return err == nil && strings.HasSuffix(out, "at worker-0")
	})
}

// resolves waits until all nodes resolve the names of API and ingress to these addresses.
func (c *cluster) resolves(t *testing.T, api4, api6, ingress4, ingress6 string) {
	t.Helper()
	for _, n := range c.nodes {
		for _, name := range []string{"api." + domain, "api-int." + domain} {
			c.awaitDNS(t, n.Address(), name, "A", api4)
			c.awaitDNS(t, n.Address(), name, "AAAA", api6)
		}
		c.awaitDNS(t, n.Address(), "console.apps."+domain, "A", ingress4)
		c.awaitDNS(t, n.Address(), "console.apps."+domain, "AAAA", ingress6)
		c.awaitDNS(t, n.Address(), n.Name+"."+domain, "A", n.Address().String())
	}
}
