package remove

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition/diff"
)

// node is the part of a Node that is read.
type node struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations struct {
			Current string `json:"machineconfiguration.openshift.io/currentConfig"`
			Desired string `json:"machineconfiguration.openshift.io/desiredConfig"`
			State   string `json:"machineconfiguration.openshift.io/state"`
			// VRRP is the settings that the node's agent reports.
			VRRP string `json:"vipgen.io/vrrp"`
		} `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func nodesOf(export *diff.Cluster) (out []node) {
	for _, raw := range export.Objects("Node") {
		var n node
		if json.Unmarshal(raw, &n) == nil && v1alpha1.ValidName(n.Metadata.Name) {
			out = append(out, n)
		}
	}
	return out
}

// reported returns the settings that the agent of a node reports; "" for none.
func (n node) reported() string {
	var said struct {
		Running string `json:"running"`
	}
	_ = json.Unmarshal([]byte(n.Metadata.Annotations.VRRP), &said) // an invalid annotation reports nothing
	return said.Running
}

// nothing is reported by a node that is left out of a migration, and so holds no VIP.
const nothing = "nothing"

// others returns the nodes that report other settings than the operator's.
func others(nodes []node) (out []string) {
	for _, n := range nodes {
		if s := n.reported(); s != "" && s != operators && s != nothing {
			out = append(out, fmt.Sprintf("%s runs %.60q", n.Metadata.Name, s))
		}
	}
	return out
}

// running names the nodes that do not report the operator's settings.
func running(nodes []node, platform string) []string {
	out := append([]string{}, others(nodes)...)
	for _, n := range nodes {
		if n.reported() == "" && n.mayHold(platform) {
			out = append(out, fmt.Sprintf("%s does not report its settings, and may hold a VIP with its old settings: see why its agent is down", n.Metadata.Name))
		}
	}
	return out
}

func (n node) has(label string) bool {
	_, ok := n.Metadata.Labels[label]
	return ok
}

// mayHold reports whether keepalived may run on the node, vipgen's or OpenShift's. It does not
// on an arbiter, on a remote worker (hard case 9) and on Windows, which has no MachineConfigs.
func (n node) mayHold(platform string) bool {
	return !n.has(v1alpha1.RoleLabel(v1alpha1.RoleArbiter)) && n.Metadata.Labels["kubernetes.io/os"] != "windows" &&
		!(platform == "baremetal" && n.has(v1alpha1.RemoteWorkerLabel))
}

func (n node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// confirmed returns the nodes that confirmations, each NODE-is-off, name. At least one
// control-plane node must remain, to show what the cluster runs.
func confirmed(nodes []node, confirmations []string) (off []string, list problem.List) {
	fail := func(text, expected string) {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.BadValue, Field: "--i-checked", Found: problem.Quote(text), Expected: expected})
	}
	for _, text := range confirmations {
		name, is := strings.CutSuffix(text, "-is-off")
		i := slices.IndexFunc(nodes, func(n node) bool { return n.Metadata.Name == name })
		switch {
		case !is:
			fail(text, "the name of a node and -is-off, when you have seen that the machine is off")
		case i < 0:
			fail(text, "a node of the export")
		case nodes[i].ready():
			fail(text, "a node that is off: by the export it is Ready")
		case !slices.Contains(off, name):
			off = append(off, name)
		}
	}
	left := func(n node) bool {
		return n.has(v1alpha1.RoleLabel(v1alpha1.RoleMaster)) && !slices.Contains(off, n.Metadata.Name)
	}
	if len(off) > 0 && !slices.ContainsFunc(nodes, left) {
		fail(strings.Join(confirmations, ","), "at least a node of the control plane that is on and reports its settings")
	}
	return off, list
}

// updating names the nodes that the operator has not finished.
func updating(nodes []node) []string {
	out := []string{}
	for _, n := range nodes {
		a := n.Metadata.Annotations
		if a.Current != a.Desired || a.State != "" && a.State != "Done" {
			out = append(out, fmt.Sprintf("%s: its update is not done", n.Metadata.Name))
		}
	}
	return out
}

// onNode is the last command for every node: the operator removes files, but not their
// directory (machine-config-operator, pkg/daemon/update.go, deleteStaleData), and no files of
// vipgen-agent.
const onNode = "rm -rf /etc/kubernetes/static-pod-resources/vipgen /etc/systemd/resolved.conf.d/60-vipgen.conf /etc/keepalived/.vipgen-* /etc/haproxy/.vipgen-* /etc/coredns/.vipgen-* /etc/coredns/hosts"

// rest returns the step after the deletion of all MachineConfigs.
func rest(nodes []node) Step {
	s := Step{Name: "clean up", Findings: []string{}, Do: []string{
		"oc delete clusterrolebinding,clusterrole vipgen-agent",
		"oc delete rolebinding,role vipgen-agent -n openshift-etcd",
		"where spec.monitoring was on: oc delete namespace openshift-vipgen-monitoring; oc delete configmap vipgen-dashboard -n openshift-config-managed; oc delete rolebinding,role vipgen-prometheus -n the namespace of the pods",
		"take vipgen's files out of the node disruption policy: oc edit machineconfiguration.operator.openshift.io cluster",
		"oc annotate node --all vipgen.io/vrrp-",
		"on each node: " + onNode,
	}}
	var names []string
	for _, n := range nodes {
		if n.Metadata.Annotations.VRRP != "" {
			names = append(names, n.Metadata.Name)
		}
	}
	if len(names) > 0 {
		s.Findings = append(s.Findings, "annotation vipgen.io/vrrp on "+strings.Join(names, ", "))
	}
	return s
}
