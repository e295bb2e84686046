package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
)

// Steps returns the page of the written directory: what to do, in order, and what each step
// does to nodes.
func (p *Plan) Steps() string {
	s := &steps{}
	s.printf("# %s adopts vipgen", p.Cluster)
	s.printf("\nMade by 'vipgen adopt' of a cluster with OpenShift %s. `install-config.yaml` and", p.Release)
	s.printf("`vipgen.yaml` are the input, `rendered` is what goes to the cluster, `operator` is what")
	s.printf("the machine-config operator laid on nodes that day, for 'vipgen adopt --check'. Commit")
	s.printf("all of it. Run the commands in this directory, in this order. Where a step says what its")
	s.printf("output has, stop if it has something else.")
	s.title("Reboots", "")
	s.reboots(p)
	s.export(p)
	s.prepare(p)
	s.canary(p)
	s.roll(p)
	s.migration(p)
	s.title("Later", "")
	s.printf("Before and after each update of OpenShift: export again, and `vipgen adopt later.yaml")
	s.printf("--dir . --check` says what the operator changed (exit code 1); with `--to RELEASE` also what")
	s.printf("that release changes. To leave: `vipgen remove live.yaml` says the steps back.")
	return s.String()
}

// Kinds lists the objects that a plan reads, and ExportKinds exports them.
const (
	kindsOfConfig = "clusterversion,controllerconfig,infrastructure,network.config,dns.config,ingress.config,"
	kindsOfNodes  = "machineconfig,machineconfigpool,machineconfiguration.operator.openshift.io,node"
	Kinds         = kindsOfConfig + kindsOfNodes
	ExportKinds   = "oc get " + kindsOfConfig + "\\\n" + kindsOfNodes + " -o yaml"
)

type steps struct {
	strings.Builder
	n int
}

func (s *steps) printf(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// title begins a part; numbered is set for the title of the next step.
func (s *steps) title(text, numbered string) {
	if numbered != "" {
		s.n++
		text = fmt.Sprintf("%d. %s", s.n, text)
	}
	s.printf("\n## %s\n", text)
}

func (s *steps) sh(lines ...string) { s.printf("\n```sh\n%s\n```", strings.Join(lines, "\n")) }

// expect lists lines of the output of the commands above.
func (s *steps) expect(what string, lines ...string) {
	s.printf("\n%s\n\n```text\n%s\n```", what, strings.Join(lines, "\n"))
}

// poolLines returns the lines of vipgen diff about the pools that a roll-out changes.
func poolLines(r Rollout, effect func(PoolCount) diff.Effect) (out []string) {
	for _, c := range r.Pools {
		if e := effect(c); e != diff.Nothing {
			out = append(out, fmt.Sprintf("  pool %s: %s", cell(c.Pool), e))
		}
	}
	return out
}

// export compares the current cluster with that of the plan.
func (s *steps) export(p *Plan) {
	s.title("Export", "step")
	s.printf("On the day of the change: nothing may have changed since `vipgen adopt` read the cluster.")
	s.sh(ExportKinds+" > now.yaml", "vipgen adopt now.yaml --dir . --check", "vipgen diff now.yaml rendered")
	s.expect("`--check` ends with `no change`; the diff names each pool once (exit code 1):",
		append([]string{"no change"}, poolLines(p.Rollouts[0], func(c PoolCount) diff.Effect { return c.With })...)...)
}

// reboots writes a table of the effect of each roll-out on each pool.
func (s *steps) reboots(p *Plan) {
	s.printf("Nodes of a pool reboot one after the other (`maxUnavailable`).\n")
	pools := lists.Map(p.export.Pools(), cell)
	s.printf("| roll-out | %s |", strings.Join(pools, " | "))
	s.printf("|---|%s", strings.Repeat("---|", len(pools)))
	for _, r := range p.Rollouts {
		if r.Mode {
			continue
		}
		s.printf("| %s | %s |", r.Name, cells(r.Pools, PoolCount.String))
	}
	for _, byMode := range []bool{false, true} {
		name := "reboots"
		if byMode && len(p.Rollouts) > 1 {
			name = "reboots, if the migration goes by `vipgen migrate` (an instant of your choice)"
		} else if byMode {
			continue
		}
		s.printf("| %s | %s |", name, cells(p.Rollouts[0].Pools, func(c PoolCount) string {
			with, without := p.Reboots(c.Pool, byMode)
			if with == without {
				return fmt.Sprint(with)
			}
			return fmt.Sprintf("%d; %d without the node disruption policy", with, without)
		}))
	}
}

// cell returns the cluster's text without Markdown syntax and line breaks.
func cell(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("|`<>[]*\\", r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
}

func cells(pools []PoolCount, text func(PoolCount) string) string {
	return strings.Join(lists.Map(pools, text), " | ")
}

// String returns a form such as "reboot", or both effects where they differ.
func (c PoolCount) String() string {
	if c.With == c.Without {
		return c.With.String()
	}
	return fmt.Sprintf("%s; without the node disruption policy: %s", c.With, c.Without)
}

func (s *steps) prepare(p *Plan) {
	s.title("Images and rights", "step")
	s.printf("Every node pulls these (`vipgen images install-config.yaml`):\n")
	s.printf("| image | | pull secret | mirror |\n|---|---|---|---|")
	for _, i := range p.Images {
		how := "by tag: a registry may move it"
		if i.Pinned {
			how = "by digest"
		}
		if i.Running {
			how += ", as the cluster runs it"
		}
		s.printf("| %s `%s` | %s | %s | %s |", i.Name, i.Image, how, secretText(i.Secret), cell(i.Mirror))
	}
	s.printf("\nAn image that a node cannot pull keeps its pods from starting: try `podman pull` of each on")
	s.printf("one node. Then give nodes what the agents need to read; no node changes for it:")
	s.sh("oc apply -f rendered/manifests")
	s.printf("\nEach line ends with `created`, `configured` or `unchanged`.")
	if p.options.DisruptionPolicy {
		s.printf("\nThat has the node disruption policy as well. Continue when it is in force: `oc get")
		s.printf("machineconfiguration.operator.openshift.io cluster -o yaml` lists cluster.yaml in its status.")
	}
}

func secretText(answer string) string {
	switch answer {
	case yes:
		return "has an entry"
	case no:
		return "has no entry: right for a public registry alone"
	}
	return "not in the export: look at `/var/lib/kubelet/config.json` of a node"
}

func (s *steps) canary(p *Plan) {
	if p.options.Canary == "" {
		return
	}
	name := p.options.Canary
	nodes := cmp.Or(strings.Join(p.options.CanaryNodes, " "), "NODE")
	s.title("The canary pool "+name, "step")
	s.printf("It has workers that are the first to run vipgen. The others keep OpenShift's own")
	s.printf("keepalived; both take part in its elections. A control-plane node cannot be in a custom pool: of")
	s.printf("that pool the first node is the canary, and pausing the pool keeps it the only one.")
	s.sh(append([]string{"oc apply -f canary", "oc label node " + nodes + " node-role.kubernetes.io/" + name + "="},
		AwaitPool(name, "30m")...)...)
	s.printf("\nThe last line is `machineconfigpool.machineconfiguration.openshift.io/%s condition met`. On the", name)
	s.printf("canary, `vipgen-agent status` in the keepalived pod then shows its VIPs and no problem.")
	s.printf("\nMoving a node between pools with the same configuration changes nothing on it; the canary's")
	s.printf("MachineConfig then reboots it once. When the worker pool has vipgen, end the canary pool,")
	s.printf("without another reboot:")
	s.sh("oc label node "+nodes+" node-role.kubernetes.io/"+name+"-", "oc delete -f canary")
}

func (s *steps) roll(p *Plan) {
	s.title("Every pool", "step")
	s.printf("If days have passed since step 1, repeat it. Pause all pools but one, apply, and continue with")
	s.printf("the next when one is done:")
	s.sh(slices.Concat(
		[]string{`oc patch machineconfigpool master --type merge -p '{"spec":{"paused":true}}'`, "oc apply -f rendered/machineconfigs"},
		AwaitPool("worker", "2h"),
		[]string{`oc patch machineconfigpool master --type merge -p '{"spec":{"paused":false}}'`},
		AwaitPool("master", "2h"))...)
	s.printf("\n`oc apply` ends with `created` for each MachineConfig, each `oc wait` with `condition met`")
	s.printf("(but `Updating` of a pool without nodes, which never is).")
	if slices.ContainsFunc(p.Import.Lost, func(l importer.Loss) bool { return l.Apart }) {
		s.printf("\n**Stop.** The report of `vipgen import` lists settings by which nodes with and without vipgen do not")
		s.printf("receive each other's advertisements: split brain while the pool updates. Take them out first.")
		return
	}
	if p.cluster.Config.Spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		s.printf("\nNodes with and without vipgen have the same VRRP settings (%s), virtual", p.cluster.Config.Spec.VRRP.Initial())
		s.printf("router IDs and passwords, so they are one group while the pools update.")
	}
}

// AwaitPool returns the commands that wait until a pool has taken what was applied: right after
// that it still is Updated for some seconds. The first one waits for the beginning.
func AwaitPool(name, bound string) []string {
	wait := "oc wait machineconfigpool " + name + " --for=condition="
	return []string{wait + "Updating --timeout=5m", wait + "Updated --timeout=" + bound}
}

func (s *steps) migration(p *Plan) {
	after := p.migrated
	if after == nil {
		return
	}
	s.title("The migration to "+string(after.Config.Spec.VRRP.Target.Profile), "step")
	s.printf("When every node runs vipgen: remove `profile`, `mode`, `version` and `advertInterval` from")
	s.printf("`spec.vrrp` of `vipgen.yaml` (`%s` is the default of the platform), render, and", after.Config.Spec.VRRP.Target)
	s.printf("compare with the cluster as it is by now:")
	s.sh("vipgen render install-config.yaml --dir rendered --format machineconfig", ExportKinds+" > now.yaml", "vipgen diff now.yaml rendered")
	s.expect("The diff has (exit code 1):", poolLines(p.Rollouts[1], func(c PoolCount) diff.Effect {
		if p.options.DisruptionPolicy {
			return c.With
		}
		return c.Without
	})...)
	if p.options.DisruptionPolicy {
		s.printf("\nNo node reboots for it. If the diff has `reboot`, the node disruption policy is not in force: see")
		s.printf("step 2.")
	}
	s.sh("oc apply -f rendered/machineconfigs")
	s.printf("\nEach line ends with `configured`. Nodes that have it wait for the others, and all migrate at one")
	s.printf("instant. `vipgen-agent status` in a keepalived pod says which nodes are not ready, and why; when")
	s.printf("all have migrated, it shows `%s` on each.", after.Config.Spec.VRRP.Target)
}
