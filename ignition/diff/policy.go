package diff

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
)

// Types of actions in OpenShift's node disruption policy.
const (
	actionNone         = "None"
	actionDrain        = "Drain"
	actionReload       = "Reload"
	actionRestart      = "Restart"
	actionDaemonReload = "DaemonReload"
	actionReboot       = "Reboot"
	actionSpecial      = "Special" // for registries.conf alone
)

type action struct {
	Type string
	// Service is the name of the service to reload or restart.
	Service string
}

// String is such as "restart crio.service".
func (a action) String() string {
	switch a.Type {
	case actionReload, actionRestart:
		return strings.ToLower(a.Type) + " " + a.Service
	case actionDaemonReload:
		return "systemctl daemon-reload"
	}
	return strings.ToLower(a.Type)
}

// rule holds the actions for a file, the files of a folder, or a unit.
type rule struct {
	Name    string
	Actions []action
}

type policy struct {
	Files, Units []rule
	SSHKey       []action
	// given is set where the cluster has a policy, so that its version knows policies: without,
	// any change of a unit means a reboot.
	given bool
}

// ruleSpan is a built-in rule of the operator for a range of releases; "" leaves an end open.
type ruleSpan struct {
	from, to string
	kind     string
	rule
}

var (
	none         = action{Type: actionNone}
	reloadCRIO   = action{actionReload, "crio.service"}
	restartTrust = action{actionRestart, "coreos-update-ca-trust.service"}
	restartIRI   = action{actionRestart, iriRegistry}
	restartKube  = action{actionRestart, "kubelet.service"}
	reloadUnits  = action{Type: actionDaemonReload}
)

const iriRegistry = "iri-registry.service"

// operatorRules are the rules of each release's operator without a policy of the user's. From
// 4.17 on: defaultClusterPolicies in its pkg/apihelpers. Before that, those built into the
// machine config daemon: calculatePostConfigChangeActionFromFileDiffs, in 4.16
// calculatePostConfigChangeActionFromMCDiffs.
var operatorRules = []ruleSpan{
	{"", "4.16", kindFile, rule{"/etc/kubernetes/kubelet-ca.crt", []action{none}}},
	{"", "", kindFile, rule{"/var/lib/kubelet/config.json", []action{none}}},
	{"4.14", "4.15", kindFile, rule{"/etc/mco/internal-registry-pull-secret.json", []action{none}}},
	{"4.16", "", kindFile, rule{"/etc/nmstate/openshift", []action{none}}},
	{"", "", kindFile, rule{"/etc/machine-config-daemon/no-reboot/containers-gpg.pub", []action{reloadCRIO}}},
	{"", "", kindFile, rule{"/etc/containers/policy.json", []action{reloadCRIO}}},
	{"", "", kindFile, rule{"/etc/containers/registries.conf", []action{{Type: actionSpecial}}}},
	{"4.16", "", kindFile, rule{"/etc/containers/registries.d", []action{reloadCRIO}}},
	{"4.18", "", kindFile, rule{"/etc/crio/policies", []action{reloadCRIO}}},
	{"4.14", "", kindFile, rule{"/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", []action{restartTrust, {actionRestart, "crio.service"}}}},
	{"4.22", "", kindFile, rule{"/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", []action{restartTrust}}},
	{"4.22", "", kindFile, rule{"/etc/kubernetes/credential-providers", []action{restartKube}}},
	{"4.22", "", kindFile, rule{"/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf", []action{reloadUnits, restartKube}}},
	{"4.22", "", kindFile, rule{"/etc/iri-registry", []action{restartIRI}}},
	{"4.22", "", kindFile, rule{"/usr/local/bin/load-registry-image.sh", []action{restartIRI}}},
	{"4.22", "", kindUnit, rule{iriRegistry, []action{reloadUnits, restartIRI}}},
}

// clusterDefaults returns the policy of a release's operator without one of the user's; for an
// unknown release, the rules that all share.
func clusterDefaults(release string) policy {
	p := policy{SSHKey: []action{none}}
	for _, r := range operatorRules {
		if release == "" && (r.from != "" || r.to != "") || !assets.Within(release, r.from, r.to) {
			continue
		}
		if r.kind == kindUnit {
			p.Units = append(p.Units, r.rule)
		} else {
			p.Files = append(p.Files, r.rule)
		}
	}
	return p
}

// file returns the rule for a file: the one with the longest path of the file or a folder
// around it.
func (p policy) file(name string) (rule rule, ok bool) {
	for _, r := range p.Files {
		if (r.Name == name || strings.HasPrefix(name, path.Clean(r.Name)+"/")) && (!ok || len(r.Name) > len(rule.Name)) {
			rule, ok = r, true
		}
	}
	return rule, ok
}

func (p policy) unit(name string) (rule, bool) {
	i := slices.IndexFunc(p.Units, func(r rule) bool { return r.Name == name })
	if i < 0 {
		return rule{}, false
	}
	return p.Units[i], true
}

// actionJSON is an action in a MachineConfiguration.
type actionJSON struct {
	Type    string                       `json:"type"`
	Reload  struct{ ServiceName string } `json:"reload"`
	Restart struct{ ServiceName string } `json:"restart"`
}

type policyJSON struct {
	Files []struct {
		Path    string       `json:"path"`
		Actions []actionJSON `json:"actions"`
	} `json:"files"`
	Units []struct {
		Name    string       `json:"name"`
		Actions []actionJSON `json:"actions"`
	} `json:"units"`
	SSHKey struct {
		Actions []actionJSON `json:"actions"`
	} `json:"sshkey"`
}

// parsePolicy reads the policy of a MachineConfiguration: the one in force by its status, else
// that of its spec over the defaults of the release, "" if unknown. Releases before 4.17 have
// no policies.
func parsePolicy(object []byte, release string) policy {
	var o struct {
		Spec struct {
			Policy policyJSON `json:"nodeDisruptionPolicy"`
		} `json:"spec"`
		Status struct {
			Policy struct {
				Cluster *policyJSON `json:"clusterPolicies"`
			} `json:"nodeDisruptionPolicyStatus"`
		} `json:"status"`
	}
	p := clusterDefaults(cmp.Or(release, "4.17"))
	if json.Unmarshal(object, &o) != nil {
		return p
	}
	p.given = true
	if o.Status.Policy.Cluster != nil {
		p = policy{given: true}
		p.add(*o.Status.Policy.Cluster)
	}
	p.add(o.Spec.Policy)
	return p
}

// add adds rules, replacing existing ones.
func (p *policy) add(j policyJSON) {
	over := func(rules []rule, name string, list []actionJSON) []rule {
		rules = slices.DeleteFunc(rules, func(r rule) bool { return r.Name == name })
		return append(rules, rule{name, actions(list)})
	}
	for _, f := range j.Files {
		p.Files = over(p.Files, f.Path, f.Actions)
	}
	for _, u := range j.Units {
		p.Units = over(p.Units, u.Name, u.Actions)
	}
	if len(j.SSHKey.Actions) > 0 {
		p.SSHKey = actions(j.SSHKey.Actions)
	}
}

func actions(list []actionJSON) []action {
	return lists.Map(list, func(a actionJSON) action { return action{a.Type, a.Reload.ServiceName + a.Restart.ServiceName} })
}
