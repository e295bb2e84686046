package installconfig

import (
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

const (
	labelRule = "lower-case letters, digits and hyphens, at most 63, with a letter or digit at both ends"
	nameRule  = "labels separated by periods, each of " + labelRule
)

// isLabel tells whether s is a DNS label (RFC 1123 section 2.1) in lower case.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// maxName is the length of the longest DNS name in text (RFC 1035 section
// 2.3.4, less the bytes of the first length and the root).
const maxName = 253

// isName tells whether s is a DNS name of labels as isLabel has them.
func isName(s string) bool {
	if len(s) > maxName {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// clusterName checks metadata.name. As the installer has it, the name may
// have several labels; it leaves their length to DNS.
func (r *reader) clusterName(name string) string {
	return r.name("metadata.name", name, "the name of the cluster", "metadata")
}

// baseDomain checks baseDomain, which may end with a dot.
func (r *reader) baseDomain(domain string) string {
	return strings.TrimSuffix(r.name("baseDomain", domain, "the domain that the cluster's names are in"), ".")
}

// name returns the DNS name in a field that must be there, or "".
func (r *reader) name(field, name, what string, around ...string) string {
	switch {
	case name == "":
		r.missing(field, what, around...)
	case !isName(name) && (field != "baseDomain" || !isName(strings.TrimSuffix(name, "."))):
		r.add(problem.BadName, field, source.Quote(name), nameRule, "")
	default:
		return name
	}
	return ""
}

// clusterDomain makes sure that the cluster's longest fixed name,
// api-int.<name>.<base domain>, is a DNS name.
func (r *reader) clusterDomain(name, base string) {
	if name == "" || base == "" {
		return
	}
	if n := len("api-int.") + len(name) + 1 + len(base); n > maxName {
		r.add(problem.BadName, "metadata.name",
			fmt.Sprintf("a name that makes api-int.<name>.<baseDomain> %d characters long", n),
			fmt.Sprintf("at most %d", maxName), "")
	}
}

// word checks text that has no fixed set of values: letters, digits and a
// few signs, so that it is inert wherever it ends up.
func (r *reader) word(field, s string) string {
	ok := len(s) <= 63
	for i := range len(s) {
		c := s[i] | 0x20
		ok = ok && (c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || i > 0 && strings.IndexByte("-_.", s[i]) >= 0)
	}
	if !ok {
		r.add(problem.BadValue, field, source.Quote(s), "a word of letters and digits", "")
		return ""
	}
	return s
}
