package metallb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
)

// Resolve plans a request for a cluster. The list has every problem of the request, by flag;
// the plan is nil when one of them is an error. If c is nil, because its input is broken, the
// request is checked by itself and there is no plan.
func Resolve(c *render.Cluster, q Request) (*Plan, problem.List) {
	r := &resolver{c: c, q: q, plan: &Plan{own: q.Pool == "", bgp: q.Mode == ModeBGP || q.Mode == "" && len(q.Peers) > 0}}
	p := &r.plan.params
	p.Name = cmp.Or(q.Name, DefaultName)
	p.Pool = cmp.Or(q.Pool, p.Name)
	p.Namespace = cmp.Or(q.Namespace, DefaultNamespace)
	p.SystemNamespace = cmp.Or(q.SystemNamespace, DefaultSystemNamespace)
	p.AnnotationPrefix = cmp.Or(q.AnnotationPrefix, Prefix)
	p.Secret = cmp.Or(q.Secret, p.Name+"-certificate")
	p.ASN, p.PasswordSecret, p.Interfaces = q.ASN, q.PasswordSecret, q.Interfaces
	r.checkNames()
	r.checkTogether()
	p.Addresses = r.addresses()
	p.TargetPort = v1alpha1.DefaultPorts.API
	if c != nil {
		p.TargetPort = c.Config.Spec.Ports.API
	}
	if p.Port = cmp.Or(q.Port, p.TargetPort); p.Port < 1 || p.Port > 65535 {
		r.badFlag(problem.BadValue, "--port", fmt.Sprint(p.Port), "a port from 1 to 65535")
	}
	p.NodeLabels = r.labels("--announce-from", q.NodeLabels)
	p.Selector = r.labels("--selector", q.Selector)
	p.Peers = r.peers()
	p.Nodes = r.nodes()
	p.Hostnames = r.hostnames()
	if c != nil {
		p.Domain = c.Config.Spec.Domain
		p.Reserve = c.Version != "4.12" // its MetalLB is older
		r.checkCluster()
	}
	r.List.Sort()
	if c == nil || r.List.Err() != nil {
		return nil, r.List
	}
	return r.plan, r.List
}

type resolver struct {
	c    *render.Cluster
	q    Request
	plan *Plan
	problem.Report
}

func (r *resolver) badFlag(code problem.Code, flag, found, expected string) {
	r.Add(code, flag, found, expected, "")
}

// nameRule is the rule for names of Services (RFC 1035 section 2.3.1), which other objects
// accept too.
const nameRule = "lower-case letters, digits and hyphens, at most 63, a letter at the beginning and no hyphen at the end"

func (r *resolver) checkNames() {
	p := r.plan.params
	label := func(flag, name, rule string, ok bool) {
		if !ok {
			r.badFlag(problem.BadName, flag, problem.Quote(name), rule)
		}
	}
	service := v1alpha1.ValidLabel(p.Name) && p.Name[0] >= 'a'
	label("--name", p.Name, nameRule, service)
	const rule = "lower-case letters, digits and hyphens, at most 63"
	label("--namespace", p.Namespace, rule, v1alpha1.ValidLabel(p.Namespace))
	label("--metallb-namespace", p.SystemNamespace, rule, v1alpha1.ValidLabel(p.SystemNamespace))
	const object = "labels separated by periods, each of lower-case letters, digits and hyphens"
	if r.q.Pool != "" {
		label("--pool", p.Pool, object, v1alpha1.ValidName(p.Pool))
	}
	if r.q.Secret != "" {
		label("--certificate-secret", p.Secret, object, v1alpha1.ValidName(p.Secret))
	}
	if p.PasswordSecret != "" {
		label("--bgp-password-secret", p.PasswordSecret, object, v1alpha1.ValidName(p.PasswordSecret))
	}
	if p.AnnotationPrefix != Prefix && p.AnnotationPrefix != OldPrefix {
		r.badFlag(problem.BadValue, "--annotation-prefix", problem.Quote(p.AnnotationPrefix), Prefix+" or, before MetalLB 0.14.9, "+OldPrefix)
	}
	for _, name := range p.Interfaces {
		// As in Linux: dev_valid_name, and IFNAMSIZ with its zero byte.
		if name == "" || len(name) > 15 || name == "." || name == ".." || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" {
			r.badFlag(problem.BadName, "--interface", problem.Quote(name), "the name of an interface: at most 15 letters, digits, periods, hyphens and underscores")
		}
	}
}

// checkTogether reports flags without effect next to another.
func (r *resolver) checkTogether() {
	q := r.q
	clash := func(is bool, flag, found, expected string) {
		if is {
			r.badFlag(problem.ConflictingFields, flag, found, expected)
		}
	}
	if q.Mode != "" && q.Mode != ModeL2 && q.Mode != ModeBGP {
		r.badFlag(problem.BadValue, "--mode", problem.Quote(q.Mode), "l2 or bgp")
		return
	}
	if q.Pool != "" {
		for flag, given := range map[string]bool{
			"--mode": q.Mode != "", "--interface": len(q.Interfaces) > 0, "--announce-from": len(q.NodeLabels) > 0,
			"--bgp-peer": len(q.Peers) > 0, "--asn": q.ASN != 0, "--bgp-password-secret": q.PasswordSecret != "",
		} {
			clash(given, flag, "it with --pool", "one of them: a pool that is there has its advertisement already")
		}
		return
	}
	bgp := r.plan.bgp
	clash(!bgp && len(q.Peers) > 0, "--bgp-peer", "it with --mode l2", "--mode bgp")
	clash(q.Mode == ModeL2 && q.ASN != 0, "--asn", "it with --mode l2", "--mode bgp")
	clash(q.Mode == "" && q.ASN != 0 && len(q.Peers) == 0, "--asn", "it without --bgp-peer", "both, or none")
	clash(bgp && len(q.Interfaces) > 0, "--interface", "it with BGP", "--mode l2, without --bgp-peer: only there nodes answer on interfaces")
	if bgp && len(q.Peers) == 0 {
		clash(q.ASN != 0, "--asn", "it without --bgp-peer", "both, or none: without, the BGPPeers that are there announce")
	}
	clash(len(q.Peers) == 0 && q.PasswordSecret != "", "--bgp-password-secret", "it without --bgp-peer", "both, or none")
	if bgp && len(q.Peers) > 0 && q.ASN == 0 {
		r.badFlag(problem.MissingField, "--asn", "nothing", "the cluster's own AS number, with --bgp-peer")
	}
}

func (r *resolver) addresses() (out []netip.Addr) {
	const flag = "--address"
	if len(r.q.Addresses) == 0 {
		r.badFlag(problem.MissingField, flag, "nothing", "the address that the API is to have besides, such as 192.0.2.17")
	}
	seen := map[bool]string{}
	for _, text := range r.q.Addresses {
		a, ok := r.address(flag, text)
		if !ok {
			continue
		}
		if first, twice := seen[a.Is4()]; twice {
			r.Add(problem.ConflictingFields, flag, text+" beside "+first, "one address of each family",
				"a Service has no more; for another one, run vipgen metallb again with another --name")
			continue
		}
		seen[a.Is4()] = text
		out = append(out, a)
	}
	return out
}

func (r *resolver) address(flag, text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		r.badFlag(problem.BadAddress, flag, problem.Quote(text), "an IP address, such as 192.0.2.17 or 2001:db8::17")
		return a, false
	case v1alpha1.UsableAddress(a) != "":
		r.badFlag(problem.BadAddress, flag, fmt.Sprintf("%s, %s", a, v1alpha1.UsableAddress(a)), "an address that other hosts can reach")
		return a, false
	}
	return a, true
}

// labels parses key=value pairs.
func (r *resolver) labels(flag string, list []string) map[string]string {
	out := map[string]string{}
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		_, twice := out[key]
		switch {
		case !ok || !v1alpha1.ValidLabelKey(key) || !v1alpha1.ValidLabelValue(value):
			r.badFlag(problem.BadValue, flag, problem.Quote(text), "key=value of a label, such as node-role.kubernetes.io/control-plane=")
		case twice:
			r.badFlag(problem.DuplicateKey, flag, problem.Quote(key)+" twice", "each key once")
		default:
			out[key] = value
		}
	}
	return out
}

// hostnames returns the names that the cluster's own certificate does not have.
func (r *resolver) hostnames() []string {
	const flag = "--hostname"
	const most = 64 // config.openshift.io/v1: names of a named certificate
	var out []string
	for _, name := range r.q.Hostnames {
		_, err := netip.ParseAddr(name)
		switch {
		case err == nil:
			r.Add(problem.BadName, flag, problem.Quote(name), "a DNS name",
				"the API server chooses a certificate by name; clients that must use an address need tls-server-name in their kubeconfig")
		case !v1alpha1.ValidName(strings.TrimPrefix(name, "*.")) || !strings.Contains(strings.TrimPrefix(name, "*."), "."):
			r.badFlag(problem.BadName, flag, problem.Quote(name), "a DNS name of several lower-case labels, the first of which may be *")
		case slices.Contains(out, name):
			r.badFlag(problem.DuplicateKey, flag, problem.Quote(name)+" twice", "each name once")
		case r.c != nil && name == "*."+r.c.Config.Spec.Domain:
			r.badFlag(problem.BadName, flag, problem.Quote(name), "names one by one: this one covers api-int, which nodes use")
		case r.internal(name):
			r.Add(problem.BadName, flag, problem.Quote(name), "a name for clients outside of the cluster",
				"nodes use that one and trust the cluster's own CA alone; with another certificate kube-apiserver's operator is Degraded")
		default:
			out = append(out, name)
		}
	}
	if len(out) > most {
		r.badFlag(problem.BadValue, flag, fmt.Sprintf("%d names", len(out)), fmt.Sprintf("at most %d", most))
	}
	if len(r.q.Hostnames) == 0 && r.q.Secret != "" {
		r.badFlag(problem.ConflictingFields, "--certificate-secret", "it without --hostname", "both, or none")
	}
	return out
}

func (r *resolver) internal(name string) bool {
	if r.c == nil {
		return strings.HasPrefix(name, "api-int.")
	}
	return name == "api-int."+r.c.Config.Spec.Domain
}
