package assets

import (
	"slices"
	"strings"
)

// AtLeast reports whether a release, as "4.17", is at least another. It is false for a release
// that the table does not have.
func AtLeast(release, least string) bool {
	at := func(v string) int {
		return slices.IndexFunc(Releases, func(r Release) bool { return r.Version == v })
	}
	i := at(release)
	return i >= 0 && i >= at(least)
}

// Applies reports whether a row applies to the nodes of a pool: role is master, worker or
// arbiter, release one of Releases, and words are true of the cluster (see Where).
func (e Entry) Applies(words []string, role, release string) bool {
	if !slices.Contains(strings.Fields(e.Roles), role) {
		return false
	}
	missing := func(word string) bool { return !slices.Contains(words, word) }
	return !slices.ContainsFunc(strings.Fields(e.Where), missing) && Within(release, e.From, e.To)
}

// BalancerManifests returns the static pods of OpenShift's own load balancer on nodes of a
// role; for an unknown release, those of all.
func BalancerManifests(role, release string) (out []string) {
	for _, e := range Contract {
		if e.Where == "managed" && e.Treatment == Replaced && e.Applies([]string{e.Where}, role, release) {
			out = append(out, e.Name)
		}
	}
	return out
}

// Within reports whether a release is between two others, inclusive; "" leaves an end open.
func Within(release, from, to string) bool {
	return (from == "" || AtLeast(release, from)) && (to == "" || release == to || !AtLeast(release, to))
}

// Span returns the releases of a row, in words.
func (e Entry) Span() string { return Span(e.From, e.To) }

// Span describes a range of releases; see Within.
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

// places are the folders of VIPs, load balancing and the cluster's DNS.
var places = []string{manifests, disabled, resources, "/etc/keepalived/", "/etc/haproxy/", "/etc/coredns/", "/etc/frr/", dispatch + "30-", dispatch + "forcedns", "/etc/dnsmasq"}

// mentions are words that show that a file or unit elsewhere affects VIPs: the daemons, the
// units that vipgen replaces, and NetworkManager's setting for /etc/resolv.conf.
var mentions = []string{"keepalived", "haproxy", "kube-vip", "nodeip-configuration", "resolv-prepender", "rc-manager"}

// Concerns reports whether a file or unit of the operator affects VIPs, so that the contract
// has to list it: by its path, or by its name or text. Rows of the contract may name others
// too, that vipgen's units rely on.
func Concerns(name, text string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(mentions, func(word string) bool { return strings.Contains(name, word) || strings.Contains(text, word) })
}
