package diff

import (
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
)

// Effect is the impact of a change on the nodes of a pool. A greater one is more disruptive.
type Effect int

const (
	// Nothing: no file, unit or setting of a node changes.
	Nothing Effect = iota
	// Files: the operator writes files, without any action.
	Files
	// AgentReload: vipgen-agent applies the change by itself.
	AgentReload
	// Services: the operator reloads or restarts services.
	Services
	// Drain: the operator drains nodes, one after the other.
	Drain
	// Reboot: the operator drains and reboots nodes, one after the other.
	Reboot
	// Refused: the operator cannot apply it to a node that runs, and the pool
	// becomes degraded.
	Refused
)

var effectNames = [...]string{"nothing", "files only", "reload by the agent", "service restart", "drain", "reboot", "refused"}

func (e Effect) String() string { return effectNames[e] }

// MarshalText returns the name.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Reason is a change with the operator's action and the rule behind it.
type Reason struct {
	Effect Effect `json:"effect"`
	// Change is its kind and name, such as "file /etc/chrony.conf".
	Change string `json:"change"`
	// Why names the rule.
	Why string `json:"why"`
}

// outcome returns the operator's effect for changes of a pool, with the changes that cause it.
func (p policy) outcome(changes []Change) (Effect, []Reason) {
	var all []Reason
	worst := Nothing
	for _, c := range changes {
		r := p.reason(c)
		all = append(all, r)
		worst = max(worst, r.Effect)
	}
	return worst, slices.DeleteFunc(all, func(r Reason) bool { return r.Effect != worst })
}

func (p policy) reason(c Change) Reason {
	r := Reason{Change: c.Kind + " " + c.Name}
	switch c.Kind {
	case kindFile:
		rule, ok := p.file(c.Name)
		r.Effect, r.Why = effect(rule, ok)
		if r.Effect == Files && c.What != rewritten && slices.Contains(v1alpha1.LiveFiles(), c.Name) {
			r.Effect, r.Why = AgentReload, "the agent applies it; the node disruption policy asks for nothing else"
		}
	case kindUnit:
		rule, ok := p.unit(c.Name)
		r.Effect, r.Why = effect(rule, ok)
		if !ok && !p.given {
			r.Why = "units are changed by a reboot"
		}
	default:
		r.Effect, r.Why = p.setting(c.Name)
	}
	if c.What == rewritten {
		r.Why = rewritten + "; " + r.Why
	}
	return r
}

func effect(rule rule, ok bool) (Effect, string) {
	if !ok {
		return Reboot, "no node disruption policy names it"
	}
	worst, why := Files, "by the node disruption policy, nothing but writing it"
	for _, a := range rule.Actions {
		e, w := Reboot, "unknown action "+a.Type
		switch a.Type {
		case actionNone:
			continue
		case actionReload, actionRestart, actionDaemonReload:
			e, w = Services, a.String()
		case actionDrain:
			e, w = Drain, "by the node disruption policy"
		case actionSpecial:
			e, w = Drain, "unless nothing but mirrors by digest were added, which takes no more than a reload of crio.service"
		case actionReboot:
			w = "by the node disruption policy"
		}
		switch {
		case e > worst:
			worst, why = e, w
		case e == worst:
			why += ", " + w
		}
	}
	return worst, why
}

// setting returns the effect of a change that is neither a file nor a unit.
func (p policy) setting(name string) (Effect, string) {
	switch name {
	case ignition.SettingUsers:
		e, why := effect(rule{Actions: p.SSHKey}, true)
		return e, why + ", as long as SSH keys and password of user core alone change; other changes are refused"
	case ignition.SettingFIPS:
		return Refused, "FIPS mode is chosen when a cluster is installed"
	case ignition.SettingKernelArguments, ignition.SettingExtensions, ignition.SettingKernelType, ignition.SettingOSImage, ignition.SettingExtensionsImage:
		return Reboot, "whatever the node disruption policy says"
	case settingVersion:
		return Nothing, "the operator translates it; its release has to know it"
	case ignition.SettingMasks, settingOrder:
		return Reboot, "units are changed by a reboot"
	}
	return Refused, fmt.Sprintf("the operator does not change %s of a node that runs; new nodes get it", name)
}
