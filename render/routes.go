package render

import (
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render/installconfig"
)

type routeDomain struct {
	name  string
	docs  layers
	field string
}

// routeDomains returns the domains that the cluster gives its routes by itself, besides
// apps.<cluster domain>: the domain of its Ingress object, where it differs, and the appsDomain
// of that object or of the VIPConfig.
func (r *resolver) routeDomains() []routeDomain {
	var out []routeDomain
	add := func(name string, docs layers, field string) {
		if name != "" && name != "apps."+r.domain() && !slices.ContainsFunc(out, func(d routeDomain) bool { return d.name == name }) {
			out = append(out, routeDomain{name, docs, field})
		}
	}
	if i := r.in.Ingress; i != nil {
		add(i.Domain, layer(i.Doc), "spec.domain")
		add(i.AppsDomain, layer(i.Doc), "spec.appsDomain")
	}
	add(r.in.VIP.Spec.AppsDomain, r.in.vipDocs, "spec.appsDomain")
	return out
}

// appsDomain returns the suffix of routes without a host; empty for apps.<cluster domain>.
func (r *resolver) appsDomain() string {
	if i := r.in.Ingress; i != nil && i.AppsDomain != "" {
		return i.AppsDomain
	}
	return r.in.VIP.Spec.AppsDomain
}

// checkAppsDomain reports an appsDomain that differs in the two files that may have it.
func (r *resolver) checkAppsDomain() {
	own := r.in.VIP.Spec.AppsDomain
	if i := r.in.Ingress; i != nil && own != "" && i.AppsDomain != own {
		expected := "none, as in the cluster's Ingress object"
		if i.AppsDomain != "" {
			expected = i.AppsDomain + ", as in the cluster's Ingress object, or none"
		}
		r.errorAt(r.in.vipDocs, problem.ConflictingFields, "spec.appsDomain", own, expected)
	}
}

// served reports whether the VIPConfig serves the names below a domain: by an ingress
// controller that lists it, or a record.
func (r *resolver) served(domain string) bool {
	spec := &r.in.VIP.Spec
	return slices.ContainsFunc(spec.Ingress, func(g v1alpha1.Ingress) bool { return slices.Contains(g.Domains, domain) }) ||
		slices.ContainsFunc(spec.DNS.Records, func(rec v1alpha1.DNSRecord) bool { return rec.Name == "*."+domain })
}

// Unresolved reads the cluster's Ingress object and warns of its domains that nodes of the
// cluster do not resolve.
func (c *Cluster) Unresolved(f File) problem.List {
	in, list := installconfig.ReadClusterIngress(f.Name, f.Data)
	if in == nil {
		return list
	}
	warn := func(field, domain string) {
		if domain == "" || c.resolves(domain) {
			return
		}
		list = append(list, layer(in.Doc).locate(problem.Problem{Severity: problem.Warning, Code: problem.ConflictingFields, Field: field, Found: domain,
			Expected: "a domain that the cluster's nodes resolve", Hint: "give it as spec.appsDomain in vipgen.yaml, or put a copy of this file beside the install-config"}))
	}
	warn("spec.domain", in.Domain)
	warn("spec.appsDomain", in.AppsDomain)
	return list
}

func (c *Cluster) resolves(domain string) bool {
	s := &c.Config.Spec
	return slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.Domains, domain) }) ||
		slices.ContainsFunc(s.DNS.Records, func(rec v1alpha1.DNSRecord) bool { return rec.Name == "*."+domain })
}

func (r *resolver) domain() string { return r.in.Install.Name + "." + r.in.Install.BaseDomain }
