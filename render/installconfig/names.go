package installconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

const (
	labelRule = "lower-case letters, digits and hyphens, at most 63, with a letter or digit at both ends"
	nameRule  = "labels separated by periods, each of " + labelRule
)

// baseDomain checks baseDomain, which may have a trailing dot.
func (r *reader) baseDomain(domain string) string {
	return strings.TrimSuffix(r.name("baseDomain", domain, "the domain that the cluster's names are in"), ".")
}

// name returns the DNS name in a required field, or "".
func (r *reader) name(field, name, what string, around ...string) string {
	switch {
	case name == "":
		r.missing(field, what, around...)
	case !v1alpha1.ValidName(name) && (field != "baseDomain" || !v1alpha1.ValidName(strings.TrimSuffix(name, "."))):
		r.add(problem.BadName, field, problem.Quote(name), nameRule, "")
	default:
		return name
	}
	return ""
}

// clusterName checks metadata.name. As in the installer, the name may have several labels, and
// leaves room for the nine characters of *.apps in DNS records (its pkg/validate, ClusterName).
func (r *reader) clusterName(name string) string {
	const longest = 63 - 9
	name = r.name("metadata.name", name, "the name of the cluster", "metadata")
	if len(name) > longest {
		r.add(problem.BadName, "metadata.name", fmt.Sprintf("%d characters", len(name)), fmt.Sprintf("at most %d, as OpenShift's installer wants", longest), "")
	}
	return name
}

// featureSet checks a value that disables release checks (openshift/api, config/v1,
// FeatureSet).
func (r *reader) featureSet(s string) string {
	known := []string{"CustomNoUpgrade", "DevPreviewNoUpgrade", "LatencySensitive", "OKD", "TechPreviewNoUpgrade"}
	if s == "" || slices.Contains(known, s) {
		return s
	}
	r.add(problem.BadValue, "featureSet", problem.Quote(s), "one of "+strings.Join(known, ", "), "")
	return ""
}

// clusterDomain checks that the cluster's longest fixed name, api-int.<name>.<base domain>, is
// a DNS name.
func (r *reader) clusterDomain(name, base string) {
	if name == "" || base == "" {
		return
	}
	const maxName = 253 // RFC 1035 section 2.3.4
	if n := len("api-int.") + len(name) + 1 + len(base); n > maxName {
		r.add(problem.BadName, "metadata.name",
			fmt.Sprintf("a name that makes api-int.<name>.<baseDomain> %d characters long", n),
			fmt.Sprintf("at most %d", maxName), "")
	}
}

// word checks text without a fixed set of values: letters, digits and a few signs, so that it
// is inert in every output.
func (r *reader) word(field, s string) string {
	ok := len(s) <= 63
	for i := range len(s) {
		c := s[i] | 0x20
		ok = ok && (c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || i > 0 && strings.IndexByte("-_.", s[i]) >= 0)
	}
	if !ok {
		r.add(problem.BadValue, field, problem.Quote(s), "a word of letters and digits", "")
		return ""
	}
	return s
}
