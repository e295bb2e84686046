package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lists"
)

// rank is the trust in a source; the lowest wins.
type rank int

const (
	byUser      rank = iota
	byState          // Infrastructure, ControllerConfig
	byManifest       // arguments of pods
	byConf           // configurations of daemons
	byNode           // reports of nodes
	byInstaller      // the install-config of the installation
)

type claim[T any] struct {
	value T
	at    Place
	rank  rank
}

type claims[T any] []claim[T]

func (c *claims[T]) add(value T, at Place, r rank) {
	*c = append(*c, claim[T]{value, at, r})
}

// sorted returns the claims, the most trusted first.
func (c claims[T]) sorted() claims[T] {
	out := slices.Clone(c)
	slices.SortStableFunc(out, func(a, b claim[T]) int { return cmp.Or(cmp.Compare(a.rank, b.rank), a.at.compare(b.at)) })
	return out
}

func (c claims[T]) best() (claim[T], bool) {
	if len(c) == 0 {
		return claim[T]{}, false
	}
	return c.sorted()[0], true
}

// addPort claims a port that is text, unless it is invalid.
func addPort(c *claims[int], text string, at Place, r rank) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil && port > 0 {
		c.add(int(port), at, r)
	}
}

// agreed returns the most trusted claim of something that must be the same everywhere. It
// reports another value, except from the time of the installation, or a derived one.
func agreed[T comparable](i *importer, what string, c claims[T], hint string) (claim[T], bool) {
	all := c.sorted()
	if len(all) == 0 {
		return claim[T]{}, false
	}
	first := all[0]
	told := map[T]bool{first.value: true}
	for _, other := range all[1:] {
		if !told[other.value] && other.rank < byInstaller && first.rank != byUser {
			told[other.value] = true
			i.contradiction(what, fmt.Sprint(other.value), other.at, fmt.Sprint(first.value), first.at, hint)
		}
	}
	return first, true
}

// usual returns the most trusted claim of something that may differ from node to node for a
// while; differences are noted.
func usual[T comparable](i *importer, what string, c claims[T]) (claim[T], bool) {
	all := c.sorted()
	if len(all) == 0 {
		return claim[T]{}, false
	}
	for _, other := range all[1:] {
		if other.value != all[0].value && other.rank < byInstaller {
			i.lose(other.at, fmt.Sprintf("%s %v, where another place has %v", what, other.value, all[0].value),
				"the same on every node; "+all[0].at.String()+" counts")
		}
	}
	return all[0], true
}

// contradiction reports a place with another value than a more trusted one.
func (i *importer) contradiction(what, found string, at Place, expected string, other Place, hint string) {
	i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.ConflictingFields, Field: what,
		Found: found, Expected: fmt.Sprintf("%s, as in %s", expected, other.String()), Hint: hint})
}

// agreedVIPs returns the VIPs of a group: those of the most trusted source, of equals the one
// with most VIPs. Every other source must have some of them; its other addresses are lost.
// keepalived's are merged from all nodes.
func (i *importer) agreedVIPs(what string, c claims[[]netip.Addr]) (claim[[]netip.Addr], bool) {
	all := slices.DeleteFunc(c.sorted(), func(c claim[[]netip.Addr]) bool { return len(c.value) == 0 })
	if len(all) == 0 {
		return claim[[]netip.Addr]{}, false
	}
	slices.SortStableFunc(all, func(a, b claim[[]netip.Addr]) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(b.value), len(a.value)))
	})
	first := all[0]
	first.value = slices.Clone(first.value)
	for _, other := range all[1:] {
		if other.rank >= byInstaller && first.rank < byInstaller {
			continue
		}
		known := slices.ContainsFunc(other.value, func(a netip.Addr) bool { return slices.Contains(first.value, a) })
		for _, a := range other.value {
			switch {
			case slices.Contains(first.value, a):
			case other.rank == first.rank && first.rank >= byConf && !slices.ContainsFunc(first.value, func(b netip.Addr) bool { return a.Is4() == b.Is4() }):
				first.value = append(first.value, a)
			case known && other.rank > first.rank:
				i.loseApart(other.at, fmt.Sprintf("%s: %s besides, which the cluster does not know", what, a),
					"nothing: announce it in another way, such as MetalLB. Adverts name all addresses of an instance, and keepalived drops those with others than its own")
			default:
				i.contradiction(what, a.String(), other.at, lists.Join(first.value, ", "), first.at, "leave out what is outdated")
			}
		}
	}
	return first, true
}
