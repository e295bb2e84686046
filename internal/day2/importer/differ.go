package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/blocks"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

// loseVRRP lists what the keepalived.conf files have and vipgen renders in another
// way. roles are the groups that are carried over.
func (i *importer) loseVRRP(cluster string, roles []v1alpha1.GroupRole) {
	for _, k := range i.confs {
		for _, g := range k.Named("global_defs") {
			for _, s := range g.Body {
				i.loseStatement(k, s, "global_defs: ")
			}
		}
		for _, s := range k.Named("vrrp_script") {
			i.loseScript(k, s)
		}
		for n := range k.instances {
			i.loseInstance(k, &k.instances[n], cluster, roles)
		}
		for _, b := range k.Blocks {
			if !slices.Contains([]string{"global_defs", "vrrp_script", "vrrp_instance"}, b.Word(0)) {
				i.loseStatement(k, b, "block ")
			}
		}
	}
}

const nothing = "nothing: vipgen's keepalived.conf has no place for it"

// usualStatements are those of the operator's keepalived.conf, for which vipgen has its own
// (docs/vrrp.md). `vipgen diff` compares the files.
var usualStatements = []string{"enable_script_security", "vrrp_version", "router_id", "script_user", "max_auto_priority", "vrrp_garp_master_refresh",
	"state", "vrrp_sync_group"}

// setting returns a statement whose value is a number, or its name alone.
func setting(s blocks.Statement) string {
	if _, err := strconv.ParseFloat(s.Word(1), 64); err == nil {
		return shown(s.Word(0)) + " " + s.Word(1)
	}
	return shown(s.Word(0))
}

// checks are the operator's scripts, in place of which the agent has checks of its own.
var checks = []string{"chk_ocp", "chk_ocp_lb", "chk_ocp_both", "chk_mcs", "chk_ingress", "chk_ingress_ready", "chk_default_ingress", "chk_dns"}

func (i *importer) loseScript(k *keepalivedConf, s blocks.Statement) {
	if slices.Contains(checks, s.Word(1)) {
		return
	}
	var has []string
	for _, b := range s.Body {
		if slices.Contains([]string{"interval", "weight", "rise", "fall", "timeout"}, b.Word(0)) {
			has = append(has, setting(b))
		}
	}
	what := "vrrp_script " + shown(s.Word(1))
	if len(has) > 0 {
		what += " (" + strings.Join(has, ", ") + ")"
	}
	i.lose(k.at(s.Line), what, "nothing: the agent does not check this, and it adds nothing to a priority")
}

// carried are the statements of an instance of which vipgen's are compared with it, or
// that follow from what the agent finds.
var carried = []string{"virtual_router_id", "priority", "advert_int", "version", "unicast_peer", "unicast_src_ip", "interface",
	"authentication", "virtual_ipaddress", "track_script"}

func (i *importer) loseInstance(k *keepalivedConf, v *vrrpInstance, cluster string, roles []v1alpha1.GroupRole) {
	if !slices.Contains(roles, v.role) {
		i.lose(k.at(v.Block.Line), "vrrp_instance "+shown(v.Name)+", with "+count(len(v.VIPs), "VIP"),
			"nothing: more API VIPs go into spec.additionalAPIVIPs of vipgen.yaml, those of another ingress controller into spec.ingress, others into a keepalived of your own")
		return
	}
	vips := words[v.role] + " VIP"
	i.losePriority(k, v, vips)
	i.losePassword(k, v, cluster, vips)
	for _, a := range v.VIPs {
		if !a.IsSingleIP() {
			i.lose(k.at(a.Statement.Line), fmt.Sprintf("the %s with the prefix length %d", vips, a.Bits()),
				fmt.Sprintf("%d, so that the kernel never takes the VIP as the source of the node's own connections", a.Addr().BitLen()))
		}
	}
	for _, a := range v.VIPs {
		if len(a.Statement.Words) > 1 {
			i.lose(k.at(a.Statement.Line), "the "+vips+" with a link, a label or a scope", "the address alone, on the link of the network that holds it")
		}
	}
	for _, s := range v.Block.Body {
		if s.Word(0) != "track_script" {
			continue
		}
		for _, t := range s.Body {
			if len(t.Words) > 1 {
				i.lose(k.at(t.Line), vips+": track_script "+shown(t.Word(0))+" with a weight of its own", "the points of the track file")
			}
		}
	}
	for _, s := range v.Block.Body {
		if !slices.Contains(carried, s.Word(0)) {
			i.loseStatement(k, s, vips+": ")
		}
	}
}

func (i *importer) losePriority(k *keepalivedConf, v *vrrpInstance, vips string) {
	group := v1alpha1.Group{Role: v.role}
	own, _ := vrrp.Terms(&group, v1alpha1.RoleMaster)
	boot, _ := vrrp.Terms(&group, v1alpha1.RoleBootstrap)
	if v.Priority == 0 || v.Priority == own || v.role == v1alpha1.GroupAPI && v.Priority == boot {
		return
	}
	i.lose(k.at(cmp.Or(v.Block.LineOf("priority"), v.Block.Line)), fmt.Sprintf("%s: priority %d", vips, v.Priority), fmt.Sprintf("priority %d, and what track files add", own))
}

// words are what reports call groups.
var words = map[v1alpha1.GroupRole]string{v1alpha1.GroupAPI: "API", v1alpha1.GroupIngress: "ingress", v1alpha1.GroupDNS: "DNS"}

// losePassword compares what goes into an advert. It shows none of it.
func (i *importer) losePassword(k *keepalivedConf, v *vrrpInstance, cluster, vips string) {
	line := func(word string) int { return v.Block.LineOf("authentication", word) }
	at := k.at(cmp.Or(line("auth_pass"), line("auth_type"), v.Block.LineOf("authentication"), v.Block.Line))
	switch {
	case v.AuthType != "" && v.AuthType != "PASS":
		i.apart(at, vips+": authentication of another type than PASS", "PASS, as OpenShift's own")
	case v.Version == 3:
		// VRRPv3 has none.
	case v.AuthType == "":
		i.apart(at, vips+": no authentication", "PASS, as OpenShift's own")
	case blocks.HasHole(v.Password):
	case v.Password != render.Password(cluster, v.role):
		i.apart(at, vips+": its own password", "the one that OpenShift derives from the cluster's name")
	}
}

// loseStatement lists a statement for which vipgen has none of its own.
func (i *importer) loseStatement(k *keepalivedConf, s blocks.Statement, where string) {
	if !slices.Contains(usualStatements, s.Word(0)) {
		i.lose(k.at(s.Line), where+setting(s), nothing)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// loseHAProxy lists the sections of a haproxy.cfg that are not the operator's. What the
// others set is vipgen's own: `vipgen diff` compares files.
func (i *importer) loseHAProxy(h *haproxyConf) {
	for _, s := range h.sections {
		kind := s.Words[0]
		usual := kind == "global" || kind == "defaults" || kind == "backend" && (h.behind == "" || name(s) == h.behind)
		if !usual && s.role(h.behind) == "" {
			i.lose(h.at(s.Line), "haproxy.cfg: "+kind+" "+shown(name(s)), "nothing: vipgen's HAProxy is in front of the API servers alone")
		}
	}
}

// loseCorefile lists what a Corefile has and vipgen renders in another way.
func (i *importer) loseCorefile(c *corefile) {
	if !c.template && len(c.upstreams) > 0 {
		i.lose(c.at(c.upstreamsLine), "Corefile: forward to "+lists.Join(c.upstreams, ", "), "the servers that each node's network brings; spec.dns.upstreams fixes them")
	}
	for _, s := range c.foreign {
		what := "Corefile: " + shown(s.Word(0))
		if s.Open && !slices.Contains(plugins, s.Word(0)) {
			what = "Corefile: a zone of its own"
		}
		i.lose(c.at(s.Line), what, "nothing: names with addresses go into spec.dns.records of vipgen.yaml")
	}
}

// plugins are those of CoreDNS with blocks that a root server may have.
var plugins = []string{"forward", "template", "rewrite", "file", "acl", "log", "cache", "prometheus", "view"}
