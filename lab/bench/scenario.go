package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/report"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/render"
)

// Scenario is a fault or a change of a cluster.
type Scenario struct {
	Name  string
	Title string // a few words
	What  string // how it is done, in a sentence
	// VIP is the group whose primary VIP is probed.
	VIP v1alpha1.GroupRole
	// Bootstrap is set if each run needs a new cluster with a bootstrap host.
	Bootstrap bool
	// NewVIP is set if the VIP after the change is probed, from the change on.
	NewVIP bool
	// Once is set if the scenario runs once with each profile, for any number of runs: it takes
	// minutes and consists of many faults.
	Once bool
	// Routed is set if the scenario is also one of VIPs that routers know by BGP: the node that fails
	// is one of those that announce the VIP.
	Routed bool
	// Limit is the time limit of a run, from the fault; 30 seconds if 0.
	Limit time.Duration
	// Aim is the aim for the default profile, as seen by the client; nil for none.
	Aim *report.Aim

	// fails returns the affected nodes, on which no clients run; nil for the holder.
	fails func(*run) []*lab.Node
	// before prepares the cluster, and may register what is to be undone.
	before func(context.Context, *run) error
	// happens executes the fault or the change.
	happens func(context.Context, *run) error
	// over waits until it is over; nil waits until clients get answers.
	over func(context.Context, *run) error
}

// aim returns the aim of an outage. It allows as many lost requests as a client sends during the
// worst outage.
func aim(median, worst time.Duration) *report.Aim {
	return &report.Aim{Profile: string(v1alpha1.ProfileFast), Median: median, Worst: worst, Lost: int(worst / probe.DefaultEvery)}
}

// limit is the default time limit of a run.
const limit = 30 * time.Second

// slowly is the limit of scenarios that take several polls of today's monitors, or restart nodes
// one after the other.
const slowly = 3 * time.Minute

const (
	api     = v1alpha1.GroupAPI
	ingress = v1alpha1.GroupIngress
)

// Scenarios returns all scenarios in order. saturate is the time for which scenario saturation
// keeps all cores busy.
func Scenarios(saturate time.Duration) []Scenario {
	return []Scenario{
		{Name: "power-loss", Title: "power loss of the holder",
			What: "The holder of the API VIP loses power: everything on it ends at once.",
			VIP:  api, Routed: true, happens: powerLoss,
			Aim: aim(200*time.Millisecond, 400*time.Millisecond)},
		{Name: "backend-power-loss", Title: "power loss of another control-plane node",
			What: "A control-plane node that does not hold the VIP loses power, and HAProxy one of its API servers.",
			VIP:  api, happens: backendPowerLoss, fails: backend},
		{Name: "link-down", Title: "link of the holder down",
			What: "The link of the holder goes down; the node itself keeps running.",
			VIP:  api, Routed: true, happens: linkDown},
		{Name: "keepalived-crash", Title: "keepalived crashes",
			What: "All processes of keepalived on the holder are killed.",
			VIP:  api, happens: keepalivedCrash},
		{Name: "agent-crash", Title: "the agent of keepalived crashes",
			What: "The supervisor of keepalived on the holder is killed: vipgen's agent, the first process of its container, so that keepalived ends with it; in the reference the monitor next to keepalived.",
			VIP:  api, happens: agentCrash},
		{Name: "both-crash", Title: "agent and keepalived killed together",
			What: "keepalived and its supervisor are killed at the same moment.",
			VIP:  api, happens: bothCrash},
		{Name: "haproxy-crash", Title: "HAProxy crashes",
			What: "All processes of HAProxy on the holder are killed, once it has run for 10 seconds.",
			VIP:  api, Routed: true, before: haproxyRuns, happens: haproxyCrash, Aim: aim(30*time.Millisecond, 100*time.Millisecond)},
		{Name: "haproxy-hang", Title: "HAProxy hangs",
			What: "All processes of HAProxy on the holder are stopped (SIGSTOP): connections are accepted, and get no answer.",
			VIP:  api, Routed: true, happens: haproxyHang, Aim: aim(300*time.Millisecond, 600*time.Millisecond)},
		{Name: "api-crash", Title: "API server of the holder is gone",
			What: "The API server of the holder is killed with its connections; HAProxy has two others.",
			VIP:  api, Routed: true, happens: apiCrash},
		{Name: "api-restart", Title: "API server of the holder restarts",
			What: "The API server of the holder shuts down gracefully, serving for a few seconds more, and is started again.",
			VIP:  api, Routed: true, happens: apiRestart, Limit: time.Minute,
			Aim: aim(0, 0)},
		{Name: "no-haproxy", Title: "HAProxy is gone on every node",
			What: "The manifest of HAProxy is removed from every control-plane node, and restored when all of its pods have ended.",
			VIP:  api, happens: noHAProxy, over: podsGone, Limit: slowly},
		{Name: "planned-stop", Title: "planned stop of keepalived (SIGTERM)",
			What: "The first process of keepalived's container on the holder gets SIGTERM, or of the bgp container on a node that announces the VIP.",
			VIP:  api, Routed: true, happens: plannedStop,
			Aim: aim(50*time.Millisecond, 150*time.Millisecond)},
		{Name: "node-returns", Title: "a node returns",
			What: "A node that lost power as the holder boots again; what clients see of its return is measured.",
			VIP:  api, Routed: true, before: nodeGone, happens: nodeReturns, over: settles, Limit: slowly},
		{Name: "partition", Title: "the holder is cut off, then the network heals",
			What: "The network cuts the holder off from the client and all other nodes, and heals once the client has had answers for a second. Each side must have a holder meanwhile; a split brain counts once the network has healed.",
			VIP:  api, happens: partition, over: partitionHeals, Limit: time.Minute},
		{Name: "router-gone", Title: "ingress router of the holder is gone",
			What: "The router on the holder of the ingress VIP is killed. The client asks for a page over http.",
			VIP:  ingress, Routed: true, happens: routerGone},
		{Name: "bootstrap", Title: "the bootstrap host hands over",
			What: "The bootstrap host holds the API VIP, leaves etcd, and its API server shuts down gracefully. Each run has its own cluster.",
			VIP:  api, Bootstrap: true, happens: bootstrapEnds, over: bootstrapGone, Limit: time.Minute},
		{Name: "rolling-restart", Title: "all nodes restart, one after the other",
			What: "Each control-plane node is restarted as its operating system does: pods and API server shut down, and it boots again. The next one follows when the cluster is healthy. Outage is the longest of them.",
			VIP:  api, Routed: true, Once: true, fails: controlPlane, happens: rollingRestart, over: settles, Limit: 3 * slowly},
		{Name: "vip-change", Title: "the API VIP changes",
			What: "cluster.yaml on all nodes gets another API VIP, and a client requests the new one from then on.",
			VIP:  api, NewVIP: true, happens: vipChange, Limit: slowly},
		{Name: "peers-change", Title: "every control-plane node changes its address",
			What: "All control-plane nodes have other addresses at the same moment, so that every node has other peers and backends.",
			VIP:  api, happens: peersChange, over: settles, Limit: slowly},
		{Name: "backends-change", Title: fmt.Sprintf("backends change under %d connections", connections),
			What: "A control-plane node that does not answer is added and removed again, so that every HAProxy is reloaded twice. Lost also counts open connections that were refused, reset or not answered.",
			VIP:  api, before: hold, happens: backendsChange, Limit: slowly,
			Aim: aim(0, 0)},
		{Name: "saturation", Title: fmt.Sprintf("all cores busy for %v", saturate),
			What: "Twice as many busy loops as there are cores, of ordinary priority. The cluster is healthy: no VIP must move.",
			VIP:  api, Once: true, Limit: saturate + time.Minute,
			happens: func(ctx context.Context, r *run) error { return saturation(ctx, saturate) }, Aim: aim(0, 0)},
	}
}

// Choose returns the named scenarios in the order of all; all if none is named.
func Choose(all []Scenario, names []string) (some []Scenario, err error) {
	known := func(s Scenario) bool { return len(names) == 0 || slices.Contains(names, s.Name) }
	var list []string
	for _, s := range all {
		list = append(list, s.Name)
		if known(s) {
			some = append(some, s)
		}
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(list, name) {
			errs = append(errs, fmt.Errorf("no scenario %q: there are %s", name, strings.Join(list, ", ")))
		}
	}
	return some, errors.Join(errs...)
}

// vip returns the VIP to probe as text; empty if the cluster has none.
func (s *Scenario) vip(c *render.Cluster) string {
	for _, g := range c.Config.Spec.Groups {
		if g.Role == s.VIP {
			return g.VIPs[0].String()
		}
	}
	return ""
}

// missing returns what the cluster of a profile lacks for a scenario; empty if it has everything.
func (s *Scenario) missing(cfg *Config, p Profile) string {
	c := cfg.cluster(p)
	switch {
	case p.Routed && !s.Routed:
		return "with VIPs by BGP it is another failure, or none"
	case c.Config.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster:
		return "the cluster's load balancer is not its own"
	case s.vip(c) == "":
		return "the cluster has no such VIP"
	case s.Bootstrap && !c.OwnsBootstrap():
		return "the bootstrap host is OpenShift's, unless loadBalancer.type is UserManaged"
	}
	return ""
}
