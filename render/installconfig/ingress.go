package installconfig

import (
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render/source"
)

// ClusterIngress is the part of the cluster's Ingress object that vipgen uses: of
// manifests/cluster-ingress-02-config.yml by the installer, or as oc prints it.
type ClusterIngress struct {
	// Doc locates fields for later problems.
	Doc *source.Document
	// Domain is the default ingress controller's, AppsDomain the suffix of routes without a
	// host; either may be empty.
	Domain, AppsDomain string
}

type ingressFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Domain     string `json:"domain"`
		AppsDomain string `json:"appsDomain"`
	} `json:"spec"`
}

// ReadClusterIngress returns the object in data and every problem that it shows by itself,
// sorted by position. The object is nil when the file is not YAML; otherwise it holds what
// could be read.
func ReadClusterIngress(name string, data []byte) (*ClusterIngress, problem.List) {
	doc, problems := source.Parse(name, data)
	if doc == nil {
		return nil, problems
	}
	var in ingressFile
	r := newReader(doc, doc.Decode(&in))
	r.only("apiVersion", in.APIVersion, "config.openshift.io/v1")
	r.only("kind", in.Kind, "Ingress")
	c := &ClusterIngress{Doc: doc}
	c.Domain = r.ingressDomain("spec.domain", in.Spec.Domain)
	c.AppsDomain = r.ingressDomain("spec.appsDomain", in.Spec.AppsDomain)
	return c, r.report()
}

// only checks a field that has one valid value.
func (r *reader) only(field, got, want string) {
	switch got {
	case want:
	case "":
		r.missing(field, problem.Quote(want))
	default:
		r.add(problem.WrongKind, field, problem.Quote(got), problem.Quote(want), "")
	}
}

// ingressDomain returns the domain in an optional field, or "".
func (r *reader) ingressDomain(field, domain string) string {
	if domain != "" && !v1alpha1.ValidName(domain) {
		r.add(problem.BadName, field, problem.Quote(domain), nameRule, "")
		return ""
	}
	return domain
}
