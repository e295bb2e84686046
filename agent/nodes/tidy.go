package nodes

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// A Node is written by its own kubelet, and the file of the last known state by
// whoever has the disk. What is not valid there goes at these two places, entry by
// entry: a fact of one node is no reason to do without the others (hard case 37).

const (
	// maxNodeAddresses is how many addresses of a Node are kept of each source,
	// many times what the interfaces of a host have.
	maxNodeAddresses = 256
	// maxUpdateText is the longest name of an object of the API, in bytes.
	maxUpdateText = 253
	// maxVRRPText is many times what an agent says of its VRRP settings, in bytes.
	maxVRRPText = 1024
)

// tidy removes from a record what is not valid, and notes what that was. A record
// whose name is not valid says nothing at all; see validRecords.
func (r *record) tidy() {
	r.Addresses = r.tidyAddresses("addresses of the status", r.Addresses)
	slices.SortFunc(r.Host, netip.Addr.Compare)
	r.Host = r.tidyAddresses("addresses of the annotations", slices.Compact(r.Host))
	r.Networks = slices.DeleteFunc(r.Networks, func(p netip.Prefix) bool { return !p.IsValid() || p != p.Masked() })
	slices.SortFunc(r.Networks, netip.Prefix.Compare)
	r.Networks = slices.Compact(r.Networks)
	r.Networks = r.Networks[:min(len(r.Networks), maxNodeAddresses)]
	r.Labels = slices.DeleteFunc(r.Labels, func(l label) bool {
		bad := !v1alpha1.ValidLabelKey(l.Key) || !v1alpha1.ValidLabelValue(l.Value)
		if bad {
			r.note("label %.80q", l.Key)
		}
		return bad
	})
	for what, s := range map[string]*string{
		"current config": &r.Update.CurrentConfig, "desired config": &r.Update.DesiredConfig,
		"state of the update": &r.Update.State, "kubelet version": &r.Update.KubeletVersion,
	} {
		if !plain(*s, maxUpdateText) {
			r.note("%s", what)
			*s = ""
		}
	}
	if !VRRPText(r.VRRP) {
		r.note("VRRP settings")
		r.VRRP = ""
	}
	slices.Sort(r.invalid)
}

func (r *record) note(format string, args ...any) {
	r.invalid = append(r.invalid, fmt.Sprintf(format, args...))
}

// tidyAddresses are the addresses that a node may have, each once, in their order.
func (r *record) tidyAddresses(what string, list []netip.Addr) []netip.Addr {
	var out []netip.Addr
	seen := make(map[netip.Addr]bool, min(len(list), maxNodeAddresses))
	for i, a := range list {
		if len(out) == maxNodeAddresses {
			r.note("%d of %d %s", len(list)-i, len(list), what)
			break
		}
		if !usable(a) {
			r.note("address %.80s", a)
		} else if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// VRRPText says whether a node's word is worth keeping: short, and fit for a log.
func VRRPText(s string) bool { return plain(s, maxVRRPText) }

// plain says whether a text is of printable ASCII, and not longer than that.
func plain(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// validRecords are those whose name can be in a configuration. The error names,
// for a log, some of those that cannot, and what is left out of others.
func validRecords(records []*record) (valid []*record, invalid int, err error) {
	var said []string
	for _, r := range records {
		what := strings.Join(r.invalid[:min(len(r.invalid), 3)], ", ")
		if v1alpha1.ValidName(r.Name) {
			valid = append(valid, r)
		} else {
			what = "all of it"
		}
		if what != "" {
			said = append(said, fmt.Sprintf("node %.80q: %s", r.Name, what))
		}
	}
	if len(said) > 0 {
		err = errors.New(some(said))
	}
	return valid, len(said), err
}
