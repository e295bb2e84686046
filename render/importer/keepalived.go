package importer

import (
	"errors"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// keepalivedConf is what a keepalived.conf, or a node template of one, says.
type keepalivedConf struct {
	file string
	// template says that it has actions; unicastIf that one of them decides
	// whether there are unicast peers.
	template, unicastIf bool
	// version is that of vrrp_version, 0 if it does not say.
	version   int
	globals   []statement
	scripts   []statement
	instances []vrrpInstance
	// rest are blocks of other kinds.
	rest []statement
}

// vrrpInstance is one vrrp_instance. Numbers that only the node knows are 0.
type vrrpInstance struct {
	statement
	// cluster is the part of the name before the role; "" if only the node knows.
	cluster string
	// role is what the name says, "" if it is not one of the operator's.
	role                      v1alpha1.GroupRole
	id, priority, advertMS    int
	idLine, advertLine        int
	versionGiven              int
	vips                      []vip
	unicast                   bool
	unicastLine               int
	authType, password        string
	authLine, passwordLine    int
	priorityLine, versionLine int
	tracks                    []statement
	foreign                   []statement // statements that are none of these
}

// vip is an address of an instance. bits is the length of the prefix that it has
// there; -1 if there is none. labelled says that it has a link, a label or a scope.
type vip struct {
	addr     netip.Addr
	bits     int
	line     int
	labelled bool
}

func (k *keepalivedConf) at(line int) Place { return Place{k.file, line} }

// instanceName is how the operator names instances: <cluster>_API, <cluster>_API_0.
var instanceName = regexp.MustCompile(`^(.*)_(API|INGRESS|DNS)(?:_(?:[0-9]+|` + hole + `))?$`)

var groupRoles = map[string]v1alpha1.GroupRole{"API": v1alpha1.GroupAPI, "INGRESS": v1alpha1.GroupIngress, "DNS": v1alpha1.GroupDNS}

// parseKeepalived reads a keepalived.conf, rendered or a template. Unlike what
// package verify reads, it may hold anything; what cannot be what it should be is
// a problem.
func parseKeepalived(file string, text []byte) (*keepalivedConf, problem.List) {
	k := &keepalivedConf{file: file}
	r := &confReader{file: file}
	masked, template, err := mask(text)
	if err == nil {
		var list []statement
		if list, err = blocks(masked, "#!"); err == nil {
			k.template = template || strings.Contains(string(text), "${")
			k.unicastIf = template && strings.Contains(string(text), ".EnableUnicast")
			for _, s := range list {
				k.take(r, s)
			}
		}
	}
	if err != nil {
		r.refuse(err, "a keepalived.conf")
	}
	return k, r.list
}

func (k *keepalivedConf) take(r *confReader, s statement) {
	switch s.word(0) {
	case "global_defs":
		k.globals = append(k.globals, s.body...)
		for _, g := range s.body {
			if g.word(0) == "vrrp_version" {
				k.version = r.number(g, 2, 3)
			}
		}
	case "vrrp_script":
		k.scripts = append(k.scripts, s)
	case "vrrp_instance":
		if i, ok := r.instance(s); ok {
			k.instances = append(k.instances, i)
		}
	default:
		k.rest = append(k.rest, s)
	}
}

// confReader gathers problems of one configuration.
type confReader struct {
	file string
	list problem.List
}

func (r *confReader) add(line int, code problem.Code, field, found, expected string) {
	r.list = append(r.list, problem.Problem{File: r.file, Line: line, Column: 1, Severity: problem.Error, Code: code, Field: field, Found: found, Expected: expected})
}

// refuse reports that a file cannot be taken apart.
func (r *confReader) refuse(err error, expected string) {
	line := 1
	var at lineError
	if errors.As(err, &at) {
		line = at.line
	}
	r.add(line, problem.Syntax, "", err.Error(), expected+" whose blocks and quotes are closed")
}

// number is the value of a statement; 0 if only the node knows it, or if it is
// none, which is reported.
func (r *confReader) number(s statement, least, most int) int {
	word := s.word(1)
	if holds(word) {
		return 0
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		r.add(s.line, problem.BadValue, s.word(0), "something else", "a number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return 0
	}
	return n
}

// milliseconds is the value of a statement in seconds, 0 as of number.
func (r *confReader) milliseconds(s statement) int {
	word := s.word(1)
	if holds(word) {
		return 0
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || !(n >= 0.01 && n <= 255) {
		r.add(s.line, problem.BadTiming, s.word(0), "something else", "0.01 to 255 seconds")
		return 0
	}
	return int(math.Round(n * 1000))
}

// instance reads a vrrp_instance. ok is false if it has no name.
func (r *confReader) instance(s statement) (vrrpInstance, bool) {
	i := vrrpInstance{statement: s, advertMS: 1000}
	if len(s.words) < 2 || !s.open {
		r.add(s.line, problem.Syntax, "vrrp_instance", "no name, or no block", "vrrp_instance NAME { ... }")
		return i, false
	}
	if m := instanceName.FindStringSubmatch(s.word(1)); m != nil {
		i.role = groupRoles[m[2]]
		if !holds(m[1]) {
			i.cluster = m[1]
		}
	}
	for _, b := range s.body {
		r.statement(&i, b)
	}
	return i, true
}

func (r *confReader) statement(i *vrrpInstance, s statement) {
	switch s.word(0) {
	case "virtual_router_id":
		i.id, i.idLine = r.number(s, 1, 255), s.line
	case "priority":
		i.priority, i.priorityLine = r.number(s, 1, 255), s.line
	case "advert_int":
		i.advertMS, i.advertLine = r.milliseconds(s), s.line
	case "version":
		i.versionGiven, i.versionLine = r.number(s, 2, 3), s.line
	case "unicast_peer", "unicast_src_ip":
		i.unicast, i.unicastLine = true, s.line
	case "interface":
		// The agent finds it.
	case "authentication":
		i.authLine = s.line
		for _, a := range s.body {
			switch a.word(0) {
			case "auth_type":
				i.authType, i.authLine = a.word(1), a.line
			case "auth_pass":
				i.password, i.passwordLine = a.word(1), a.line
			}
		}
	case "virtual_ipaddress":
		for _, a := range s.body {
			r.vip(i, a)
		}
	case "track_script":
		i.tracks = append(i.tracks, s.body...)
	default:
		i.foreign = append(i.foreign, s)
	}
}

// vip reads a line of virtual_ipaddress.
func (r *confReader) vip(i *vrrpInstance, s statement) {
	word, length, has := strings.Cut(s.word(0), "/")
	if holds(word) {
		return
	}
	v := vip{bits: -1, line: s.line, labelled: len(s.words) > 1}
	var err error
	if v.addr, err = netip.ParseAddr(word); err != nil {
		r.add(s.line, problem.BadAddress, "virtual_ipaddress", "something else", "an IP address, with or without the length of a prefix")
		return
	}
	if has && !holds(length) {
		if v.bits, err = strconv.Atoi(length); err != nil || v.bits < 0 || v.bits > v.addr.BitLen() {
			r.add(s.line, problem.BadNetwork, "virtual_ipaddress", v.addr.String()+" with another length of its prefix", "0 to "+strconv.Itoa(v.addr.BitLen()))
			return
		}
	}
	i.vips = append(i.vips, v)
}

// claim says what a configuration tells of the cluster.
func (k *keepalivedConf) claim(e *evidence) {
	e.confs = append(e.confs, k)
	byRole := map[v1alpha1.GroupRole][]netip.Addr{}
	first := map[v1alpha1.GroupRole]int{}
	unicast, multicast := 0, 0
	for _, i := range k.instances {
		if i.role == "" {
			continue
		}
		if i.cluster != "" && v1alpha1.ValidName(i.cluster) {
			e.name.add(i.cluster, k.at(i.line), byConf)
		}
		for _, v := range i.vips {
			byRole[i.role] = append(byRole[i.role], v.addr)
			if first[i.role] == 0 {
				first[i.role] = v.line
			}
			if v.bits >= 0 && v.bits < v.addr.BitLen() {
				e.vipNetworks.add(netip.PrefixFrom(v.addr, v.bits).Masked(), k.at(v.line), byConf)
			}
		}
		switch {
		case !i.unicast:
			multicast = i.line
		case unicast == 0:
			unicast = i.unicastLine
		}
	}
	for role, list := range map[v1alpha1.GroupRole]*claims[[]netip.Addr]{v1alpha1.GroupAPI: &e.api, v1alpha1.GroupIngress: &e.ingress, v1alpha1.GroupDNS: &e.dns} {
		if len(byRole[role]) > 0 {
			list.add(byRole[role], k.at(first[role]), byConf)
		}
	}
	if k.unicastIf {
		return // decided by what the pod is started with
	}
	if unicast > 0 {
		e.mode.add(v1alpha1.ModeUnicast, k.at(unicast), byConf)
	}
	if multicast > 0 {
		e.mode.add(v1alpha1.ModeMulticast, k.at(multicast), byConf)
	}
}
