package diff

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/lists"
)

// Types of actions of a node disruption policy, as OpenShift names them.
const (
	actionNone         = "None"
	actionDrain        = "Drain"
	actionReload       = "Reload"
	actionRestart      = "Restart"
	actionDaemonReload = "DaemonReload"
	actionReboot       = "Reboot"
	actionSpecial      = "Special" // of registries.conf alone
)

// action is what the operator does for a change.
type action struct {
	Type string
	// Service is the one to reload or restart.
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

// rule says what is done when a file, one in a folder, or a unit changes.
type rule struct {
	Name    string
	Actions []action
}

// policy is a node disruption policy.
type policy struct {
	Files, Units []rule
	SSHKey       []action
	// Given says that somebody gave one, so that the cluster's version knows
	// policies: without, any change of a unit means a reboot.
	Given bool
}

const (
	reloadCRIO  = "crio.service"
	updateTrust = "coreos-update-ca-trust.service"
)

// clusterDefaults is what OpenShift does without a policy of the user's:
// OpenShift 4.18, "Using node disruption policies", the default policy. Releases
// before 4.17 have the rules for these files built into the machine config daemon,
// later ones more of them than earlier ones.
func clusterDefaults() policy {
	return policy{
		Files: []rule{
			{"/etc/mco/internal-registry-pull-secret.json", []action{{Type: actionNone}}},
			{"/var/lib/kubelet/config.json", []action{{Type: actionNone}}},
			{"/etc/machine-config-daemon/no-reboot/containers-gpg.pub", []action{{actionReload, reloadCRIO}}},
			{"/etc/containers/policy.json", []action{{actionReload, reloadCRIO}}},
			{"/etc/containers/registries.conf", []action{{Type: actionSpecial}}},
			{"/etc/containers/registries.d", []action{{actionReload, reloadCRIO}}},
			{"/etc/nmstate/openshift", []action{{Type: actionNone}}},
			{"/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", []action{{actionRestart, updateTrust}, {actionRestart, reloadCRIO}}},
		},
		SSHKey: []action{{Type: actionNone}},
	}
}

// file finds the rule of a file: the one of the longest path that is the file's
// or a folder around it.
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

// actionJSON is an action as it stands in a MachineConfiguration.
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

// parsePolicy reads the policy of a MachineConfiguration: the one that the
// operator says is in force, else that of its spec over the defaults.
func parsePolicy(object []byte) policy {
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
	p := clusterDefaults()
	if json.Unmarshal(object, &o) != nil {
		return p
	}
	p.Given = true
	if o.Status.Policy.Cluster != nil {
		p = policy{Given: true}
		p.add(*o.Status.Policy.Cluster)
	}
	p.add(o.Spec.Policy)
	return p
}

// add puts rules over those that are there.
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
