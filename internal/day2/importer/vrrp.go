package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// settleVRRP determines mode, timing and virtual router IDs, and lists the differences to
// keepalived's settings.
func (i *importer) settleVRRP(ic *installFile, vc *v1alpha1.VIPConfig) {
	mode := i.settleMode()
	if mode == v1alpha1.ModeMulticast {
		vc.Spec.VRRP.Mode = mode
	}
	settings := i.settleTiming(vc)
	derived := v1alpha1.RouterIDs(ic.Metadata.Name)
	i.settleIDs(vc, derived)
	// Next to OpenShift's own keepalived vipgen would start with its settings.
	other := mode != v1alpha1.ModeUnicast || settings != v1alpha1.ProfileClassic || vc.Spec.VRRP.VirtualRouterIDs.API != 0
	if other && len(vc.Spec.APIVIPs) == 0 {
		no := false
		vc.Spec.VRRP.Interoperable = &no
	}
	i.settleMembers(vc)
	i.loseVRRP(ic.Metadata.Name)
}

func (i *importer) settleMode() v1alpha1.Mode {
	all := i.mode
	if i.given.Mode != "" {
		all = append(slices.Clone(all), claim[v1alpha1.Mode]{i.given.Mode, Place{}, byUser})
	}
	hint := "nodes that differ do not interoperate: wait until a migration is done, leave out what is outdated, or give --mode"
	if mode, ok := agreed(i, "the mode", all, hint); ok {
		i.carry("mode", string(mode.value), mode.at)
		return mode.value
	}
	if mode, ok := agreed(i, "the mode", i.flag, hint); ok {
		i.carry("mode", string(mode.value), mode.at)
		return mode.value
	}
	i.add(problem.Problem{Code: problem.MissingField, Field: "spec.vrrp.mode", Found: "nothing that shows whether advertisements are unicast or multicast",
		Expected: "a rendered keepalived.conf, or the manifest of keepalived with ENABLE_UNICAST", Hint: "or give --mode; nodes that differ do not interoperate"})
	return v1alpha1.ModeUnicast
}

// settleMembers puts every node into the group of the ingress VIPs, as OpenShift's own
// keepalived does, unless a control-plane node proves otherwise: while one node after the other
// changes, control-plane nodes would not receive the adverts of changed nodes, and would hold
// the VIP too.
func (i *importer) settleMembers(vc *v1alpha1.VIPConfig) {
	const what, all = "members, ingress", "every node of control plane and compute"
	topology, _ := i.topology.best()
	narrow := false
	for _, k := range i.confs {
		has := map[v1alpha1.GroupRole]vrrpInstance{}
		for _, v := range k.instances {
			has[v.role] = v
		}
		api, control := has[v1alpha1.GroupAPI]
		ingress, both := has[v1alpha1.GroupIngress]
		switch {
		case control && both:
			i.carry(what, all, k.at(ingress.Block.Line))
			vc.Spec.Ingress = everywhere()
			return
		case control && api.Priority != vrrp.BootstrapPriority && topology.value != string(v1alpha1.TopologyHighlyAvailableArbiter):
			narrow = true
		}
	}
	if !narrow {
		i.assume(what, all, "that is what OpenShift's own keepalived has; spec.ingress[].nodeSelector narrows it")
		vc.Spec.Ingress = everywhere()
	}
}

// everywhere returns the default ingress controller on every node.
func everywhere() []v1alpha1.Ingress {
	return []v1alpha1.Ingress{{Name: v1alpha1.DefaultIngress, NodeSelector: map[string]string{}}}
}

// settleTiming determines version and interval: those of the API VIP count.
func (i *importer) settleTiming(vc *v1alpha1.VIPConfig) v1alpha1.Profile {
	type timing struct{ version, ms int }
	var all claims[timing]
	for _, k := range i.confs {
		for _, v := range k.instances {
			if v.role == "" || v.AdvertMS == 0 {
				continue
			}
			if v.IPv6() {
				continue // always VRRPv3; IPv4 shows the configured version
			}
			r := byConf
			if v.role != v1alpha1.GroupAPI {
				r = byNode
			}
			all.add(timing{v.Version, v.AdvertMS}, k.at(cmp.Or(v.Block.LineOf("advert_int"), v.Block.Line)), r)
		}
	}
	t, ok := all.best()
	if !ok {
		t.value = timing{2, 1000}
		i.assume("timing", "classic: VRRPv2, an advertisement every second", "that is what OpenShift's own keepalived has, and the source has no other")
		vc.Spec.VRRP.Profile = v1alpha1.ProfileClassic
		return v1alpha1.ProfileClassic
	}
	for _, other := range all.sorted() {
		if other.value != t.value {
			i.loseApart(other.at, fmt.Sprintf("VRRPv%d with an advertisement every %v", other.value.version, v1alpha1.Millis(other.value.ms)),
				fmt.Sprintf("one timing for all VIPs: VRRPv%d, every %v, as at %s", t.value.version, v1alpha1.Millis(t.value.ms), t.at.String()))
		}
	}
	text := fmt.Sprintf("VRRPv%d, an advertisement every %v", t.value.version, v1alpha1.Millis(t.value.ms))
	v := &vc.Spec.VRRP
	switch {
	case t.value == timing{2, 1000}:
		v.Profile = v1alpha1.ProfileClassic
	case t.value == timing{3, v1alpha1.FastIntervalMS}:
		v.Profile = v1alpha1.ProfileFast
	case t.value == timing{3, v1alpha1.VirtualIntervalMS}:
		v.Profile = v1alpha1.ProfileVirtual
	default:
		v.Profile, v.Version, v.AdvertInterval = v1alpha1.ProfileCustom, t.value.version, v1alpha1.Duration(t.value.ms)*1_000_000
	}
	i.carry("timing", string(v.Profile)+": "+text, t.at)
	return v.Profile
}

// settleIDs writes the virtual router IDs that differ from those derived from the name.
func (i *importer) settleIDs(vc *v1alpha1.VIPConfig, derived v1alpha1.VirtualRouterIDs) {
	own := &vc.Spec.VRRP.VirtualRouterIDs
	for _, g := range []struct {
		role  v1alpha1.GroupRole
		field *int
		want  int
	}{{v1alpha1.GroupAPI, &own.API, derived.API}, {v1alpha1.GroupIngress, &own.Ingress, derived.Ingress}} {
		var all claims[int]
		for _, k := range i.confs {
			for _, v := range k.instances {
				if v.role == g.role && v.RouterID != 0 {
					all.add(v.RouterID, k.at(v.Block.LineOf("virtual_router_id")), byConf)
				}
			}
		}
		what := "virtual router ID, " + words[g.role]
		id, ok := agreed(i, what, all, "leave out what is of another cluster")
		switch {
		case !ok:
			i.assume(what, strconv.Itoa(g.want), "derived from the cluster's name as OpenShift derives it; no rendered keepalived.conf has another")
		default:
			i.carry(what, strconv.Itoa(id.value), id.at)
			if id.value != g.want {
				*g.field = id.value
			}
		}
	}
}

var routerPort = lazy.Regexp(`http://(?:localhost|127\.0\.0\.1|0):([0-9]{1,5})/healthz`)

// routerHealth takes the port of the routers' health from the check scripts.
func (i *importer) routerHealth() {
	for _, k := range i.confs {
		for _, s := range k.Named("vrrp_script") {
			if s.Word(1) != "chk_ingress" && s.Word(1) != "chk_ingress_ready" {
				continue
			}
			for _, b := range s.Body {
				if m := routerPort().FindStringSubmatch(b.Word(1)); b.Word(0) == "script" && m != nil {
					addPort(&i.routerPorts, m[1], k.at(b.Line), byConf)
				}
			}
		}
	}
}
