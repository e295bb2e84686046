package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/templates/manifest"
)

// release is a release of OpenShift with the daemons of its nodes. No release has keepalived
// 2.3 yet: it stands for later ones.
type release struct {
	version             string
	keepalived, haproxy daemon.Generation
}

var releases = []release{
	{"4.13", daemon.Old, daemon.Old},
	{"4.15", daemon.Installed, daemon.Installed},
	{"4.18", daemon.New, daemon.New},
}

// daemonImages are keepalived and HAProxy of all generations, as manifests name them.
func daemonImages(t *testing.T) map[string]container.Image {
	t.Helper()
	out := map[string]container.Image{}
	for _, g := range daemon.Generations {
		image := container.Image{Distribution: true, Root: g.Root(t)}
		out[registry+"keepalived:"+g.Name] = image
		image.BindService = []string{"/usr/sbin/haproxy"}
		out[registry+"haproxy:"+g.Name] = image
	}
	return out
}

// TestGenerations lets nodes of three releases of OpenShift, with keepalived and HAProxy of
// different generations, elect together, as during the rollout of an update: each of them holds
// the VIPs and loses power, and they migrate to classic together.
func TestGenerations(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	trees := map[string]tree{}
	for i, r := range releases {
		trees[fmt.Sprintf("master-%d", i)] = renders(t, testkit.Vipgen(t), "--dir", versionYAML("1", r.keepalived.Name, r.haproxy.Name), "--openshift-version", r.version)
	}
	// Debian's 2.3 wants this file, over which the pod mounts the node's directory.
	trees["master-2"]["/etc/keepalived/keepalived.config-opts"] = ""
	l := threeOf(t, daemonImages(t), func(n *Node) tree { return trees[n.Name] })
	for i, x := range l.exchanged {
		for _, c := range []struct{ name, option, version string }{
			{manifest.Keepalived, "--version", "v" + releases[i].keepalived.Keepalived},
			{manifest.HAProxy, "-v", "version " + releases[i].haproxy.HAProxy},
		} {
			out := x.exec(c.name, c.name, c.name, c.option)
			testkit.Contains(testkit.In(t, x.Name, c.name), out, c.version)
		}
	}
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	classic := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	l.awaitSettings(fast.String())
	l.eachLosesPower()
	l.migrates("all migrate from fast to classic", classic, fastToClassic)
	l.end()
}

// eachLosesPower makes each node hold the VIPs and lose power.
func (l *rollout) eachLosesPower() {
	l.t.Helper()
	// Three advertisements, 40 ms apart, and the skew time.
	const failover = 200 * time.Millisecond
	for i, x := range l.exchanged {
		l.step(x.Name+" takes the VIPs", failover, 0, func() { l.takes(x) })
		l.step(fmt.Sprintf("%s, with keepalived %s, loses its power", x.Name, releases[i].keepalived.Keepalived), failover, 0, func() {
			x.powerOff()
			for _, vip := range l.vips {
				l.otherHolder(l.t, vip, x.node)
			}
		})
		l.step(x.Name+" returns", 0, 0, func() {
			x.powerOn()
			x.settles()
		})
	}
}

// takes makes a node hold all VIPs: the others run without keepalived for a while.
func (l *rollout) takes(x *exchanged) {
	l.t.Helper()
	var restore []func()
	for _, other := range l.exchanged {
		if other != x {
			restore = append(restore, other.removePod(manifest.Keepalived))
		}
	}
	testkit.Await(l.t, x.Name+" to hold all VIPs", func() bool {
		return !slices.ContainsFunc(l.vips, func(vip netip.Addr) bool { return !x.holds(vip) })
	})
	for _, put := range restore {
		put()
	}
	for _, other := range l.exchanged {
		other.settles()
	}
}
