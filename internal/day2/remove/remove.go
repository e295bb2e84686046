// Package remove plans the return of a cluster from vipgen to OpenShift's own keepalived, and
// reports its progress by an export of the cluster.
//
// While nodes change one after the other, vipgen's and the operator's have to be one VRRP
// group. So first all nodes get what the operator's keepalived has: VRRP settings, virtual
// router IDs, VIPs, members. Only then vipgen's MachineConfigs may be deleted.
package remove

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/yamllimit"
	"github.com/vipgen/vipgen/render"
)

// Options are the options of the command line.
type Options struct {
	// ExternalLB is set where an external load balancer holds the VIPs by now.
	ExternalLB bool
	// Off are confirmations, each NODE-is-off, for nodes that cannot report their settings.
	Off []string
}

// State is the progress of a step.
type State string

const (
	Done State = "done"
	Now  State = "now"
	// Waits is for a step that depends on others.
	Waits State = "waits"
)

// Step is one of the steps, in their order.
type Step struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Findings lists the obstacles that keep the step from being done.
	Findings []string `json:"findings"`
	// Do are the commands, and other actions.
	Do []string `json:"do"`
}

// Pool is a pool with vipgen's MachineConfigs.
type Pool struct {
	Name string `json:"name"`
	// MachineConfigs of vipgen; empty once they are deleted.
	MachineConfigs []string `json:"machineConfigs"`
	// Settings of its files; empty where nodes hold no VIPs.
	Settings string `json:"settings,omitempty"`
	// Effect is the operator's on nodes when the MachineConfigs are deleted, and Returns how
	// many files and units of the operator come back.
	Effect  diff.Effect `json:"effect"`
	Returns int         `json:"returns"`

	config *v1alpha1.ClusterConfig
}

// Removal is the progress of a removal.
type Removal struct {
	Pools []Pool `json:"pools"`
	Steps []Step `json:"steps"`
	// SplitBrain lists the reasons why two nodes may hold a VIP now; empty without any.
	SplitBrain []string `json:"splitBrain"`
	// MayDelete is set where vipgen's MachineConfigs may be deleted, or are deleted already.
	MayDelete bool `json:"mayDelete"`
}

// Read returns the progress of the removal. The list has the problems of unreadable files, and
// of missing parts of the export.
func Read(files []render.File, o Options) (*Removal, problem.List) {
	observed, list := importer.Observe(files)
	export := adopt.Export(files)
	export.Release = observed.Release
	r := &Removal{SplitBrain: []string{}}
	fail := func(found, expected, hint string) {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.MissingField, Found: found, Expected: expected, Hint: hint})
	}
	if len(export.OperatorItems(v1alpha1.RoleMaster)) == 0 {
		fail("no MachineConfig of the operator", "all MachineConfigs of the cluster", "'vipgen remove --help' says what to export")
	}
	for _, name := range []string{v1alpha1.RoleMaster, v1alpha1.RoleArbiter, v1alpha1.RoleWorker} {
		if slices.Contains(export.Pools(), name) {
			p, err := pool(export, name)
			if err != nil {
				list = append(list, problem.Problem{Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "cluster.yaml as vipgen renders it"})
				continue
			}
			r.Pools = append(r.Pools, *p)
		}
	}
	nodes := nodesOf(export)
	if len(nodes) == 0 {
		fail("no Nodes", "all Nodes of the cluster, whose annotations have their settings", "'vipgen remove --help' says what to export")
	}
	off, problems := confirmed(nodes, o.Off)
	list = append(list, problems...)
	if observed.Platform == "" {
		fail("no platform", "the Infrastructure or the ControllerConfig", "'vipgen remove --help' says what to export")
	}
	list.Sort()
	if list.Err() != nil {
		return nil, list
	}
	nodes = slices.DeleteFunc(nodes, func(n node) bool { return slices.Contains(off, n.Metadata.Name) })
	r.steps(observed, nodes, off, o)
	return r, list
}

func pool(export *diff.Cluster, name string) (*Pool, error) {
	p := &Pool{Name: name, MachineConfigs: []string{}}
	var mode *v1alpha1.ModeFileContent
	has := map[string]bool{}
	for _, i := range export.VipgenItems(name) {
		has[i.Name] = true
		p.MachineConfigs = lists.Add(p.MachineConfigs, i.From)
		var err error
		switch i.Name {
		case v1alpha1.ClusterConfigPath:
			if err = yamllimit.Bound([]byte(i.Text)); err == nil {
				p.config, err = v1alpha1.LoadClusterConfig(i.From+":"+path.Base(i.Name), []byte(i.Text))
			}
		case v1alpha1.UserModeFile:
			mode, err = v1alpha1.ParseModeFile([]byte(i.Text))
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(p.MachineConfigs)
	for _, i := range export.OperatorItems(name) {
		if has[i.Name] {
			p.Returns++
		}
	}
	p.Effect = export.WithoutVipgens(name)
	if p.config != nil && p.config.Spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		settings := p.config.Spec.VRRP.Target
		if mode != nil {
			var err error
			if settings, err = mode.Settings(&p.config.Spec); err != nil {
				return nil, err
			}
		}
		p.Settings = settings.String()
	}
	return p, nil
}

// outside returns the VIPs of an external load balancer.
func (p *Pool) outside() (out []netip.Addr) {
	if p.config != nil && p.config.Spec.LoadBalancer == v1alpha1.LoadBalancerExternal {
		out = append(out, lists.FlatMap(p.config.Spec.Groups, func(g v1alpha1.Group) []netip.Addr { return g.VIPs })...)
	}
	return out
}

// operators are the settings of OpenShift's own keepalived.
var operators = v1alpha1.ClassicSettings(v1alpha1.ModeUnicast).String()

// steps sets the steps with their progress.
func (r *Removal) steps(o *importer.Observed, nodes []node, off []string, options Options) {
	var with, without []string
	held := false
	runs := !o.UserManaged && assets.PlatformNamed(o.Platform).HasVIPs() // OpenShift's keepalived
	fromOutside := runs && slices.ContainsFunc(r.Pools, func(p Pool) bool { return len(p.outside()) > 0 })
	for _, p := range r.Pools {
		if p.config == nil {
			without = append(without, p.Name)
			continue
		}
		with = append(with, p.Name)
		held = held || p.Settings != ""
	}
	gone := len(with) == 0
	match := []string{}
	if runs {
		match = r.match(o.VIPs)
	}
	migrate := Step{Name: "every node as OpenShift's own keepalived", Findings: match, Do: []string{
		"in vipgen.yaml: spec.vrrp {profile: classic, mode: unicast}, no virtualRouterIDs, no VIPs besides the API's and the default ingress controller's, and for that `spec.ingress: [{name: default, nodeSelector: {}}]`",
		"vipgen render install-config.yaml --dir rendered",
		"vipgen diff live.yaml rendered",
		"oc apply -f rendered/machineconfigs",
	}}
	wait := Step{Name: "wait until every node runs it", Findings: []string{}, Do: []string{"export again, and run this again"}}
	switch {
	case held && runs:
		wait.Findings = running(nodes, o.Platform)
	case fromOutside:
		wait.Findings = append(wait.Findings, others(nodes)...)
		wait.Do = append([]string{"when their updates are done, the reports of nodes are from before the external load balancer: oc annotate node --all vipgen.io/vrrp-"}, wait.Do...)
	}
	wait.Findings = append(wait.Findings, updating(nodes)...)
	vips := Step{Name: "the VIPs have a holder afterwards", Findings: []string{}, Do: []string{
		"'vipgen external-lb' makes what a load balancer outside runs; then give --external-lb",
	}}
	if held && !options.ExternalLB && !runs {
		vips.Findings = append(vips.Findings, "OpenShift runs no keepalived on this cluster: when vipgen's files go, no node holds the VIPs")
	}
	remove := Step{Name: "delete vipgen's MachineConfigs", Findings: []string{}}
	if fromOutside {
		remove.Do = append(remove.Do, fmt.Sprintf("keep the external load balancer until all nodes are done and DNS outside of the cluster leads to %s; the control plane goes first, as its nodes alone hold the API VIP", lists.Join(o.VIPs, ", ")))
	}
	var started []string
	for _, p := range r.Pools {
		for _, name := range p.MachineConfigs {
			remove.Findings = append(remove.Findings, fmt.Sprintf("%s is there (pool %s)", name, p.Name))
			remove.Do = append(remove.Do, "oc delete machineconfig "+name)
		}
		if len(p.MachineConfigs) == 0 {
			continue
		}
		wait := adopt.AwaitPool(p.Name, "2h")
		if fromOutside { // one pool after the other
			remove.Do = append(remove.Do, wait...)
		} else {
			started = append(started, wait[0])
		}
	}
	remove.Do = append(remove.Do, started...)
	for _, name := range off {
		remove.Do = append(remove.Do, fmt.Sprintf("oc delete node %s; install the machine anew before it starts: with what is on its disk it runs its old settings (split brain)", name))
	}
	remove.Do = append(remove.Do, "oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")
	r.Steps = []Step{migrate, wait, vips, remove, rest(nodes)}
	if gone {
		// Nothing is left that could be migrated; nodes may still be updating.
		r.Steps[0].Findings, r.Steps[1].Findings, r.Steps[2].Findings = []string{}, updating(nodes), []string{}
	}
	if runs && len(without) > 0 {
		r.SplitBrain = append(r.SplitBrain, split(without, with, match, nodes)...)
	}
	r.order()
	r.MayDelete = gone || len(r.Steps[0].Findings)+len(r.Steps[1].Findings)+len(r.Steps[2].Findings) == 0
}

// split explains why nodes of pools without vipgen and nodes that still run it both hold a VIP:
// vipgen's differ from OpenShift's keepalived, by their files or by their reports.
func split(without, with, match []string, nodes []node) []string {
	other := others(nodes)
	gone := len(with) == 0
	switch {
	case !gone && len(match) > 0:
		return []string{fmt.Sprintf("pool %s runs OpenShift's keepalived, pool %s does not receive its advertisements: %s", strings.Join(without, ", "), strings.Join(with, ", "), match[0])}
	case len(other) > 0 && (!gone || len(updating(nodes)) > 0):
		return []string{fmt.Sprintf("pool %s gets OpenShift's keepalived, and these nodes do not receive its advertisements: %s", strings.Join(without, ", "), strings.Join(other, ", "))}
	}
	return nil
}

// order sets the state of each step: all before the current one are done.
func (r *Removal) order() {
	blocked := false
	for i := range r.Steps {
		s := &r.Steps[i]
		switch {
		case blocked:
			s.State = Waits
		case len(s.Findings) == 0:
			s.State = Done
		default:
			s.State, blocked = Now, true
		}
	}
}

// match lists the differences between vipgen's files and the operator's keepalived by which
// nodes with and without them do not receive each other's adverts, or a VIP has no holder or
// two.
func (r *Removal) match(operatorVIPs []netip.Addr) (out []string) {
	out = []string{}
	for _, p := range r.Pools {
		say := func(format string, args ...any) {
			if text := fmt.Sprintf(format, args...); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
		for _, vip := range p.outside() {
			if slices.Contains(operatorVIPs, vip) {
				say("the external load balancer has %s, which OpenShift's keepalived will hold: give the load balancer another address first ('Moving back' in docs/external-lb.md)", vip)
			}
		}
		if p.Settings == "" {
			continue
		}
		if p.Settings != operators {
			say("pool %s: its files ask for %s, OpenShift's keepalived has %s", p.Name, p.Settings, operators)
		}
		ids := v1alpha1.RouterIDs(p.config.Metadata.Name)
		for _, g := range p.config.Spec.Groups {
			want := map[string]int{"api": ids.API, "ingress": ids.Ingress, "dns": ids.DNS}[g.Name]
			switch {
			case len(g.VIPs) == 0:
			case want == 0:
				say("group %s: OpenShift's keepalived does not have its VIPs: take them out of vipgen.yaml once their clients use others", g.Name)
			case g.VirtualRouterID != want:
				say("group %s: virtual router ID %d, OpenShift's keepalived has %d. IDs do not change together: do it while clients can do without the VIP", g.Name, g.VirtualRouterID, want)
			case g.Role == v1alpha1.GroupIngress && len(g.NodeSelector) > 0:
				say("group %s: some nodes are not in it, and OpenShift's keepalived on these would receive no advertisement of a holder", g.Name)
			}
		}
	}
	return out
}
