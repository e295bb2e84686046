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
	"github.com/vipgen/vipgen/templates/haproxy"
)

// loseVRRP lists what the keepalived.conf files have and vipgen renders in another
// way. roles are the groups that are carried over.
func (i *importer) loseVRRP(cluster string, roles []v1alpha1.GroupRole) {
	for _, k := range i.confs {
		for _, g := range k.Named("global_defs") {
			for _, s := range g.Body {
				i.loseGlobal(k, s)
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
				i.loseBlock(k, b)
			}
		}
	}
}

// globals are the settings that are known, with what vipgen does. Empty is the
// same.
var globals = map[string]string{
	"enable_script_security":   "",
	"vrrp_version":             "", // settleTiming
	"router_id":                "", // names the node in keepalived's log
	"script_user":              "keepalived runs no script: the agent checks, and writes what it finds to track files",
	"max_auto_priority":        "vrrp_priority -20, which is a nice value",
	"vrrp_garp_master_refresh": "vrrp_garp_master_refresh 30, so that neighbours forget nothing for longer",
}

func (i *importer) loseGlobal(k *keepalivedConf, s blocks.Statement) {
	instead, known := globals[s.Word(0)]
	switch {
	case !known:
		i.lose(k.at(s.Line), "global_defs: "+shown(s.Word(0)), nothing)
	case instead != "":
		i.lose(k.at(s.Line), "global_defs: "+setting(s), instead)
	}
}

const nothing = "nothing: vipgen's keepalived.conf has no place for it"

// setting gives a statement whose value is a number, or its name alone.
func setting(s blocks.Statement) string {
	if _, err := strconv.ParseFloat(s.Word(1), 64); err == nil {
		return shown(s.Word(0)) + " " + s.Word(1)
	}
	return shown(s.Word(0))
}

// counterpart says what vipgen has in place of one of the operator's scripts.
type counterpart struct {
	role  v1alpha1.GroupRole
	terms []string // ends of the names of terms
}

var counterparts = map[string]counterpart{
	"chk_ocp":             {v1alpha1.GroupAPI, []string{"lb-path", "lb-or-api"}},
	"chk_ocp_lb":          {v1alpha1.GroupAPI, []string{"lb-path"}},
	"chk_ocp_both":        {v1alpha1.GroupAPI, []string{"lb-or-api"}},
	"chk_mcs":             {v1alpha1.GroupAPI, []string{"machine-config"}},
	"chk_ingress":         {v1alpha1.GroupIngress, []string{"-ready", "-away"}},
	"chk_ingress_ready":   {v1alpha1.GroupIngress, []string{"-ready"}},
	"chk_default_ingress": {v1alpha1.GroupIngress, []string{"-here"}},
	"chk_dns":             {v1alpha1.GroupDNS, []string{"dns"}},
}

// text is what vipgen has, from where it has it.
func (c counterpart) text() string {
	group := v1alpha1.Group{Name: strings.ToLower(string(c.role)), Role: c.role}
	_, terms := vrrp.Terms(&group, v1alpha1.RoleMaster)
	var out []string
	for _, t := range terms {
		if !slices.ContainsFunc(c.terms, func(end string) bool { return strings.HasSuffix(t.Name, end) }) {
			continue
		}
		effect := fmt.Sprintf("+%d", t.Points)
		if t.Points == 0 {
			effect = "a veto"
		}
		out = append(out, fmt.Sprintf("track file %s: %s while %s", t.Name, effect, t.Meaning))
	}
	return strings.Join(out, "; ")
}

func (i *importer) loseScript(k *keepalivedConf, s blocks.Statement) {
	var has []string
	for _, b := range s.Body {
		switch b.Word(0) {
		case "interval", "weight", "rise", "fall", "timeout":
			has = append(has, setting(b))
		case "script":
		default:
			has = append(has, shown(b.Word(0)))
		}
	}
	what := "vrrp_script " + shown(s.Word(1))
	if len(has) > 0 {
		what += " (" + strings.Join(has, ", ") + ")"
	}
	instead := "nothing: the agent does not check this, and it adds nothing to a priority"
	if c, known := counterparts[s.Word(1)]; known {
		instead = c.text()
	}
	i.lose(k.at(s.Line), what, instead)
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
			i.loseStatement(k, v, s, vips)
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

// statements of an instance that are known, with what vipgen does.
var statements = map[string]string{
	"nopreempt":          "a node of a higher priority takes the VIP; of equals none does",
	"preempt_delay":      "a node of a higher priority takes the VIP at once",
	"track_interface":    "keepalived leaves an instance whose interface is down anyway; other interfaces are not watched",
	"dont_track_primary": "an instance whose interface is down is in state FAULT",
	"track_file":         "track files of the agent",
	"track_process":      "nothing: the agent does not look for that process",
	"use_vmac":           "no virtual MAC address: the holder announces the VIP by gratuitous ARP or neighbour advertisements",
	"mcast_src_ip":       "the address of the interface",
	"notify":             "nothing is run: watch the agent's metrics and log",
	"notify_master":      "nothing is run: watch the agent's metrics and log",
	"notify_backup":      "nothing is run: watch the agent's metrics and log",
	"notify_fault":       "nothing is run: watch the agent's metrics and log",
	"notify_stop":        "nothing is run: watch the agent's metrics and log",
}

func (i *importer) loseStatement(k *keepalivedConf, v *vrrpInstance, s blocks.Statement, vips string) {
	name := s.Word(0)
	switch {
	case name == "state" && s.Word(1) == "BACKUP":
	case name == "state":
		i.lose(k.at(s.Line), vips+": a state other than BACKUP", "state BACKUP: every node starts as one, and the highest priority wins")
	default:
		i.lose(k.at(s.Line), vips+": "+setting(s), cmp.Or(statements[name], nothing))
	}
}

func (i *importer) loseBlock(k *keepalivedConf, s blocks.Statement) {
	instead := nothing
	if s.Word(0) == "vrrp_sync_group" {
		instead = "one group for the VIPs of each purpose on OpenStack, where both families share a port; elsewhere VIPs move by themselves"
	}
	i.lose(k.at(s.Line), "block "+shown(s.Word(0)), instead)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// usualHAProxy are statements of the operator's own haproxy.cfg, in sections for
// which vipgen has figures of its own.
var usualHAProxy = []string{"maxconn", "mode", "log", "log-format", "option", "retries", "timeout", "balance", "stats", "http-check", "default_backend", "bind", "monitor-uri"}

// limits are the statements of global and defaults that have figures.
var limits = []string{"maxconn", "retries", "timeout"}

// ownHAProxy returns the first section of that kind in the haproxy.cfg that vipgen renders for
// a control-plane node.
func ownHAProxy(kind string) section {
	text, err := haproxy.Render(haproxy.Template, &v1alpha1.ClusterConfig{}, &v1alpha1.Node{Role: v1alpha1.RoleMaster})
	if err != nil {
		return section{}
	}
	h, _ := parseHAProxy("haproxy.cfg", text)
	n := slices.IndexFunc(h.sections, func(s section) bool { return s.Words[0] == kind })
	if n < 0 {
		return section{}
	}
	return h.sections[n]
}

// loseHAProxy lists what a haproxy.cfg has and vipgen renders in another way.
func (i *importer) loseHAProxy(h *haproxyConf) {
	behind := ""
	for _, s := range h.sections {
		if s.Words[0] == "backend" && behind == "" && slices.ContainsFunc(s.Body, func(l blocks.Statement) bool { return l.Word(0) == "server" }) {
			behind = name(s)
		}
	}
	for _, s := range h.sections {
		at := h.at(s.Line)
		what := strings.TrimSpace("haproxy.cfg: " + s.Words[0] + " " + shownOr(name(s)))
		switch role := s.role(behind); {
		case s.Words[0] == "global", s.Words[0] == "defaults":
			i.lose(at, what+": "+figures(s, limits...), "vipgen's own (templates/haproxy): "+figures(ownHAProxy(s.Words[0]), limits...))
		case role == roleStats:
			i.lose(at, what+", a page of statistics", "none: the agent has metrics, on loopback")
		case s.Words[0] == "backend" && (name(s) == behind || behind == "") || role == roleAPI:
			i.loseChecks(h, s)
		case role == roleReady:
			i.loseURI(h, s)
		default:
			i.lose(at, what, "nothing: vipgen's HAProxy is in front of the API servers alone")
			continue
		}
		for _, l := range s.Body {
			if !slices.Contains(usualHAProxy, l.Word(0)) && l.Word(0) != "server" {
				i.lose(h.at(l.Line), what+": "+shown(l.Word(0)), "nothing: vipgen's haproxy.cfg has no place for it")
			}
		}
	}
}

func shownOr(name string) string {
	if name == "" {
		return ""
	}
	return shown(name)
}

// figures names the statements of a section that have some of the words, with
// numbers and times.
func figures(s section, words ...string) string {
	var out []string
	for _, l := range s.Body {
		if slices.Contains(words, l.Word(0)) {
			text := l.Word(0)
			for _, w := range l.Words[1:] {
				if plainName().MatchString(w) {
					text += " " + w
				}
			}
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return "its settings"
	}
	return strings.Join(out, ", ")
}

// loseChecks lists how servers are checked, once.
func (i *importer) loseChecks(h *haproxyConf, s section) {
	for _, l := range s.Body {
		if has := checks(section{blocks.Statement{Body: []blocks.Statement{l}}}); len(has) > 0 {
			i.lose(h.at(l.Line), "haproxy.cfg: servers checked with "+strings.Join(has, ", "), strings.Join(checks(ownHAProxy("backend")), ", ")+", and out at once when connections fail (templates/haproxy)")
		}
	}
}

// checks returns how the servers of a section are checked, such as "inter 5s".
func checks(s section) (has []string) {
	for _, l := range s.Body {
		if l.Word(0) != "server" && l.Word(0) != "default-server" {
			continue
		}
		for n, w := range l.Words[:len(l.Words)-1] {
			if slices.Contains([]string{"inter", "fall", "rise", "weight"}, w) && plainName().MatchString(l.Words[n+1]) {
				has = append(has, w+" "+l.Words[n+1])
			}
		}
	}
	return has
}

func (i *importer) loseURI(h *haproxyConf, s section) {
	for _, l := range s.Body {
		if l.Word(0) == "monitor-uri" && l.Word(1) != "/haproxy_ready" {
			i.lose(h.at(l.Line), "haproxy.cfg: its health at another path than /haproxy_ready", "/haproxy_ready")
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
