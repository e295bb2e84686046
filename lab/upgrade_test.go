package lab

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/upgrade"
	"github.com/vipgen/vipgen/templates/manifest"
)

const registry = "registry.example.com/"

// agentImages returns the images of both versions, as manifests and units name them.
func agentImages(t *testing.T, before string) map[string]container.Image {
	t.Helper()
	image := func(path string) container.Image {
		return container.Image{Programs: map[string]string{"/usr/bin/vipgen-agent": path}}
	}
	return map[string]container.Image{registry + "agent:before": image(before), registry + "agent:now": image(testkit.Agent(t))}
}

// Planned outages. A node that stops gives its VIPs up first; backups with the fast settings
// wait for the skew time and no longer, those with classic for three advertisements at most.
// Migrations may take the times of docs/upgrade.md.
const (
	handover        = 160 * time.Millisecond
	classicHandover = 4 * time.Second
	fastToClassic   = 3040 * time.Millisecond
)

// TestUpgrade replaces vipgen on a running cluster, node by node, from the previous version to
// this one and back, under a client's load: on two nodes one pod before the others, so that
// jobs of both versions share a node. Nodes of both elect, and migrate to classic together.
func TestUpgrade(t *testing.T) {
	testkit.Only(t, "lab-upgrade")
	testkit.Live(t)
	t.Parallel()
	old := upgrade.Build(t)
	before := renders(t, old.Vipgen, "-o", versionYAML("before", "1", "1"))
	now := renders(t, testkit.Vipgen(t), "--dir", versionYAML("now", "1", "1"))
	l := threeOf(t, agentImages(t, old.Agent), func(*Node) tree { return before })
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	classic := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	l.awaitSettings(fast.String())
	order := l.holderFirst()
	first, second, third := order[0], order[1], order[2]
	exchange := func(what string, x *exchanged, planned time.Duration, next tree, only ...string) {
		t.Helper()
		l.step(what+" "+x.Name, planned, 0, func() {
			x.give(next, only...)
			x.settles()
			x.jobsUnderstandEachOther()
		})
	}
	podFile := func(name string) string { return v1alpha1.ManifestDir + "/" + name + ".yaml" }
	exchange("upgrade: pod haproxy of", first, handover, now, podFile(manifest.HAProxy))
	exchange("upgrade: all else of", first, handover, now)
	exchange("upgrade: pod keepalived of", second, handover, now, podFile(manifest.Keepalived))
	exchange("upgrade: all else of", second, handover, now)
	l.migrates("two nodes upgraded: fast to classic", classic, fastToClassic)
	exchange("upgrade: all of", third, classicHandover, now)
	exchange("downgrade: all of", third, classicHandover, before)
	exchange("downgrade: all of", second, classicHandover, before)
	exchange("downgrade: all of", first, classicHandover, before)
	l.step("downgraded "+first.Name+" reboots", classicHandover, 0, func() { first.reboots(); first.settles() })
	l.end()
}

// jobsUnderstandEachOther runs the agents of the node's containers, some of which may have the
// other version, for the status of all jobs.
func (x *exchanged) jobsUnderstandEachOther() {
	x.cluster.t.Helper()
	for _, in := range []string{manifest.Keepalived, manifest.HAProxy, manifest.CoreDNS} {
		var said string
		testkit.Await(x.cluster.t, "the agent in "+in+" on "+x.Name+" to report every job as healthy", func() bool {
			out, code, err := x.container(in, in).Exec(x.cluster.t.Context(), "/vipgen/vipgen-agent", "status", "-o", "json")
			said = fmt.Sprint(out, code, err)
			var r state.Report
			return err == nil && code == 0 && json.Unmarshal([]byte(out), &r) == nil && well(r)
		}, func() string { return said })
	}
}

// well reports whether all jobs of a control-plane node publish that they are healthy.
func well(r state.Report) bool {
	return r.Keepalived != nil && r.Keepalived.Wanted && r.Keepalived.VRRP != nil && len(r.Keepalived.Instances) == 2 &&
		r.HAProxy != nil && r.HAProxy.Serving && len(r.HAProxy.Backends) == 3 &&
		r.Firewall != nil && r.Firewall.InPlace && len(r.Firewall.VIPs) == 2 &&
		r.CoreDNS != nil && r.CoreDNS.Serving && r.MDNS != nil && r.MDNS.Name != ""
}
