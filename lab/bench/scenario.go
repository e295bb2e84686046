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

// Scenario is something that happens to a cluster.
type Scenario struct {
	Name  string
	Title string // in a few words
	What  string // how it is done, in a sentence
	// VIP is the group whose primary VIP is asked for.
	VIP v1alpha1.GroupRole
	// Bootstrap asks for a cluster of its own with a bootstrap host for each run.
	Bootstrap bool
	// NewVIP asks for the VIP that there will be, from the moment on at which it is
	// asked for.
	NewVIP bool
	// Once has it happen once to each profile, however many runs there are, because
	// it takes minutes and is many of its kind in one.
	Once bool
	// Limit bounds a run from what happens to its end; 30 seconds if 0.
	Limit time.Duration
	// Aim is that of the default profile, as the client sees it; nil for none.
	Aim *report.Aim

	// fails are the nodes that are hit, on which there are no clients; the holder if nil.
	fails func(*run) []*lab.Node
	// before makes the cluster ready for it, and may say what is to be undone.
	before func(context.Context, *run) error
	// happens is what happens.
	happens func(context.Context, *run) error
	// over returns when it is over; when clients get answers if it is nil.
	over func(context.Context, *run) error
}

// aim gives the one of an outage. Who asks all the time and gets no answer for as
// long as the worst loses as many requests as fit.
func aim(median, worst time.Duration) *report.Aim {
	return &report.Aim{Profile: string(v1alpha1.ProfileFast), Median: median, Worst: worst, Lost: int(worst / probe.DefaultEvery)}
}

// limit is for how long a client is asked to wait in any case.
const limit = 30 * time.Second

// slowly is the limit of what takes several looks of today's monitors, or
// restarts nodes one after the other.
const slowly = 3 * time.Minute

const (
	api     = v1alpha1.GroupAPI
	ingress = v1alpha1.GroupIngress
)

// Scenarios are all that there are, in the order in which they happen. saturate is
// how long the one of that name keeps all cores busy.
func Scenarios(saturate time.Duration) []Scenario {
	return []Scenario{
		{Name: "power-loss", Title: "power loss of the holder",
			What: "The holder of the API VIP and everything on it is gone at once.",
			VIP:  api, happens: powerLoss,
			Aim: aim(200*time.Millisecond, 400*time.Millisecond)},
		{Name: "backend-power-loss", Title: "power loss of another control-plane node",
			What: "A control-plane node that does not hold the VIP, and everything on it, is gone at once: an API server of HAProxy's.",
			VIP:  api, happens: backendPowerLoss, fails: backend},
		{Name: "link-down", Title: "link of the holder down",
			What: "The link of the holder goes down; the node itself runs on.",
			VIP:  api, happens: linkDown},
		{Name: "keepalived-crash", Title: "keepalived crashes",
			What: "All processes of keepalived on the holder are killed.",
			VIP:  api, happens: keepalivedCrash},
		{Name: "agent-crash", Title: "the agent beside keepalived crashes",
			What: "What watches over keepalived on the holder is killed: vipgen's agent, with which keepalived ends as it is the first process of its container; of the reference the monitor beside it.",
			VIP:  api, happens: agentCrash},
		{Name: "both-crash", Title: "agent and keepalived killed together",
			What: "Keepalived and what watches over it are killed at the same moment.",
			VIP:  api, happens: bothCrash},
		{Name: "haproxy-crash", Title: "HAProxy crashes",
			What: "All processes of HAProxy on the holder are killed, once it has run for 10 seconds.",
			VIP:  api, before: haproxyRuns, happens: haproxyCrash, Aim: aim(30*time.Millisecond, 100*time.Millisecond)},
		{Name: "haproxy-hang", Title: "HAProxy hangs",
			What: "All processes of HAProxy on the holder are stopped (SIGSTOP): connections are taken, and nobody answers.",
			VIP:  api, happens: haproxyHang, Aim: aim(300*time.Millisecond, 600*time.Millisecond)},
		{Name: "api-crash", Title: "API server of the holder is gone",
			What: "The API server of the holder is killed with its connections; HAProxy has two others.",
			VIP:  api, happens: apiCrash},
		{Name: "api-restart", Title: "API server of the holder restarts",
			What: "The API server of the holder ends properly, serving for a few seconds more, and is started again.",
			VIP:  api, happens: apiRestart, Limit: time.Minute,
			Aim: aim(0, 0)},
		{Name: "no-haproxy", Title: "HAProxy is gone on every node",
			What: "The manifest of HAProxy is taken from every control-plane node, and is back when all of its pods are gone.",
			VIP:  api, happens: noHAProxy, over: podsGone, Limit: slowly},
		{Name: "planned-stop", Title: "planned stop of keepalived (SIGTERM)",
			What: "The first process of keepalived's container on the holder gets SIGTERM.",
			VIP:  api, happens: plannedStop,
			Aim: aim(50*time.Millisecond, 150*time.Millisecond)},
		{Name: "node-returns", Title: "a node returns",
			What: "A node that lost its power as holder comes back; what counts is what that does to clients.",
			VIP:  api, before: nodeGone, happens: nodeReturns, over: settles, Limit: slowly},
		{Name: "partition", Title: "the holder is cut off, then the network heals",
			What: "The network cuts the holder off from the client and all other nodes, and heals once the client has had answers for a second. Each side must have a holder meanwhile; a split brain is counted from the healing on.",
			VIP:  api, happens: partition, over: partitionHeals, Limit: time.Minute},
		{Name: "router-gone", Title: "ingress router of the holder is gone",
			What: "The router on the holder of the ingress VIP is killed. The client asks for a page over http.",
			VIP:  ingress, happens: routerGone},
		{Name: "bootstrap", Title: "the bootstrap host hands over",
			What: "The bootstrap host holds the API VIP, leaves etcd, and its API server ends properly. Each run has a cluster of its own.",
			VIP:  api, Bootstrap: true, happens: bootstrapEnds, over: bootstrapGone, Limit: time.Minute},
		{Name: "rolling-restart", Title: "all nodes restart, one after the other",
			What: "Each control-plane node is restarted as its operating system does: pods and API server are asked to end, and it comes back. The next one follows when all is well. Outage is the longest of them.",
			VIP:  api, Once: true, fails: controlPlane, happens: rollingRestart, over: settles, Limit: 3 * slowly},
		{Name: "vip-change", Title: "the API VIP changes",
			What: "The cluster gets another API VIP by what nodes read, and a client asks for the new one from then on.",
			VIP:  api, NewVIP: true, happens: vipChange, Limit: slowly},
		{Name: "peers-change", Title: "every control-plane node changes its address",
			What: "All control-plane nodes have other addresses at the same moment, so that every node has other peers and backends.",
			VIP:  api, happens: peersChange, over: settles, Limit: slowly},
		{Name: "backends-change", Title: fmt.Sprintf("backends change under %d connections", connections),
			What: "A control-plane node is announced that does not answer, and taken away again, so that every HAProxy is reloaded twice. Lost counts what was refused, reset or not answered of open connections, too.",
			VIP:  api, before: hold, happens: backendsChange, Limit: slowly,
			Aim: aim(0, 0)},
		{Name: "saturation", Title: fmt.Sprintf("all cores busy for %v", saturate),
			What: "Twice as many busy loops as there are cores, of ordinary priority. Nothing is wrong with the cluster: the VIP is to stay where it is.",
			VIP:  api, Once: true, Limit: saturate + time.Minute,
			happens: func(ctx context.Context, r *run) error { return saturation(ctx, saturate) }, Aim: aim(0, 0)},
	}
}

// Choose gives the scenarios of those names in the order of all; all without any.
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

// vip is the one that is asked for, in words; empty if the cluster has none.
func (s *Scenario) vip(c *render.Cluster) string {
	for _, g := range c.Config.Spec.Groups {
		if g.Role == s.VIP {
			return g.VIPs[0].String()
		}
	}
	return ""
}

// without says what the cluster lacks for a scenario; empty if it has everything.
func (s *Scenario) without(c *render.Cluster) string {
	switch {
	case c.Config.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster:
		return "the cluster's load balancer is not its own"
	case s.vip(c) == "":
		return "the cluster has no such VIP"
	case s.Bootstrap && !c.OwnsBootstrap():
		return "the bootstrap host is OpenShift's, unless loadBalancer.type is UserManaged"
	}
	return ""
}
