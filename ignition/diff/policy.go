package diff

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
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

// Action is what the operator does for a change.
type Action struct {
	Type string
	// Service is the one to reload or restart.
	Service string
}

// String is such as "restart crio.service".
func (a Action) String() string {
	switch a.Type {
	case actionReload, actionRestart:
		return strings.ToLower(a.Type) + " " + a.Service
	case actionDaemonReload:
		return "systemctl daemon-reload"
	}
	return strings.ToLower(a.Type)
}

// Rule says what is done when a file, one in a folder, or a unit changes.
type Rule struct {
	Name    string
	Actions []Action
}

// Policy is a node disruption policy.
type Policy struct {
	Files, Units []Rule
	SSHKey       []Action
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
func clusterDefaults() Policy {
	return Policy{
		Files: []Rule{
			{"/etc/mco/internal-registry-pull-secret.json", []Action{{Type: actionNone}}},
			{"/var/lib/kubelet/config.json", []Action{{Type: actionNone}}},
			{"/etc/machine-config-daemon/no-reboot/containers-gpg.pub", []Action{{actionReload, reloadCRIO}}},
			{"/etc/containers/policy.json", []Action{{actionReload, reloadCRIO}}},
			{"/etc/containers/registries.conf", []Action{{Type: actionSpecial}}},
			{"/etc/containers/registries.d", []Action{{actionReload, reloadCRIO}}},
			{"/etc/nmstate/openshift", []Action{{Type: actionNone}}},
			{"/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", []Action{{actionRestart, updateTrust}, {actionRestart, reloadCRIO}}},
		},
		SSHKey: []Action{{Type: actionNone}},
	}
}

// file finds the rule of a file: the one of the longest path that is the file's
// or a folder around it.
func (p Policy) file(name string) (rule Rule, ok bool) {
	for _, r := range p.Files {
		if (r.Name == name || strings.HasPrefix(name, path.Clean(r.Name)+"/")) && (!ok || len(r.Name) > len(rule.Name)) {
			rule, ok = r, true
		}
	}
	return rule, ok
}

func (p Policy) unit(name string) (Rule, bool) {
	i := slices.IndexFunc(p.Units, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return Rule{}, false
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
func parsePolicy(object []byte) Policy {
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
		p = Policy{Given: true}
		p.add(*o.Status.Policy.Cluster)
	}
	p.add(o.Spec.Policy)
	return p
}

// add puts rules over those that are there.
func (p *Policy) add(j policyJSON) {
	over := func(rules []Rule, name string, list []actionJSON) []Rule {
		rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.Name == name })
		return append(rules, Rule{name, actions(list)})
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

func actions(list []actionJSON) []Action {
	var out []Action
	for _, a := range list {
		out = append(out, Action{a.Type, a.Reload.ServiceName + a.Restart.ServiceName})
	}
	return out
}
