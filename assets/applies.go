package assets

import (
	"slices"
	"strings"
)

// AtLeast says whether a release, as "4.17", is that one or a later one. One that the
// table of releases does not have is neither.
func AtLeast(release, least string) bool {
	at := func(v string) int {
		return slices.IndexFunc(Releases, func(r Release) bool { return r.Version == v })
	}
	i := at(release)
	return i >= 0 && i >= at(least)
}

// Applies says whether a row is about the nodes of a pool: role is master, worker or
// arbiter, release one of Releases, and words are what is true of the cluster (see Where).
func (e Entry) Applies(words []string, role, release string) bool {
	if !slices.Contains(strings.Fields(e.Roles), role) {
		return false
	}
	for _, word := range strings.Fields(e.Where) {
		if !slices.Contains(words, word) {
			return false
		}
	}
	return Within(release, e.From, e.To)
}

// BalancerManifests are the static pods by which OpenShift's own load balancer runs on nodes of a
// role. Of a release that is not known, they are those of any.
func BalancerManifests(role, release string) (out []string) {
	for _, e := range Contract {
		if e.Where == "managed" && e.Treatment == Replaced && e.Applies([]string{e.Where}, role, release) {
			out = append(out, e.Name)
		}
	}
	return out
}

// Within reports whether a release is one from a first to a last; "" is the first, and the
// last, that is known.
func Within(release, from, to string) bool {
	return (from == "" || AtLeast(release, from)) && (to == "" || release == to || !AtLeast(release, to))
}

// Span is the releases of a row, in words.
func (e Entry) Span() string { return Span(e.From, e.To) }

// Span returns releases in words, from a first to a last; see Within.
func Span(from, to string) string {
	switch {
	case from == "" && to == "":
		return "all"
	case from == to:
		return from
	case to == "":
		return "from " + from
	case from == "":
		return "to " + to
	}
	return from + " to " + to
}

// places are the folders whose files are VIPs', load balancing's or the cluster's DNS'.
var places = []string{manifests, disabled, resources, "/etc/keepalived/", "/etc/haproxy/", "/etc/coredns/", "/etc/frr/", dispatch + "30-", dispatch + "forcedns", "/etc/dnsmasq"}

// mentions are words by which a file or unit elsewhere has to do with VIPs: the daemons,
// the units that vipgen replaces, and NetworkManager's setting for /etc/resolv.conf.
var mentions = []string{"keepalived", "haproxy", "kube-vip", "nodeip-configuration", "resolv-prepender", "rc-manager"}

// Concerns says whether a file or unit of the operator has to do with VIPs, so that the
// contract has to know it: by its place, or by what its name or text mentions. A row of
// the contract may name others too, that vipgen's units rely on.
func Concerns(name, text string) bool {
	for _, p := range places {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for _, word := range mentions {
		if strings.Contains(name, word) || strings.Contains(text, word) {
			return true
		}
	}
	return false
}
