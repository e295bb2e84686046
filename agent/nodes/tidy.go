package nodes

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// A Node is written by its own kubelet, and the state file by anyone with access to the
// disk. Invalid entries are removed one by one: bad data of one node must not affect the
// others (hard case 37).

const (
	// maxNodeAddresses bounds the addresses of a Node per source, at many times the
	// interfaces of a host.
	maxNodeAddresses = 256
	// maxUpdateText is the longest name of an object of the API, in bytes.
	maxUpdateText = 253
)

// sanitize removes invalid parts of a record and lists them in invalid. Records with
// invalid names are dropped by validRecords.
func (r *record) sanitize() {
	r.Addresses = r.sanitizeAddresses("addresses of the status", r.Addresses)
	slices.SortFunc(r.Host, netip.Addr.Compare)
	r.Host = r.sanitizeAddresses("addresses of the annotations", slices.Compact(r.Host))
	r.Networks = slices.DeleteFunc(r.Networks, func(p netip.Prefix) bool { return !p.IsValid() || p != p.Masked() })
	slices.SortFunc(r.Networks, netip.Prefix.Compare)
	r.Networks = slices.Compact(r.Networks)
	r.Networks = r.Networks[:min(len(r.Networks), maxNodeAddresses)]
	r.Labels = slices.DeleteFunc(r.Labels, func(l label) bool {
		bad := !v1alpha1.ValidLabelKey(l.Key) || !v1alpha1.ValidLabelValue(l.Value)
		if bad {
			r.discard("label %.80q", l.Key)
		}
		return bad
	})
	for what, s := range map[string]*string{
		"current config": &r.Update.CurrentConfig, "desired config": &r.Update.DesiredConfig,
		"state of the update": &r.Update.State, "kubelet version": &r.Update.KubeletVersion,
	} {
		if !nodelist.Printable(*s, maxUpdateText) {
			r.discard("%s", what)
			*s = ""
		}
	}
	if !nodelist.ValidVRRPText(r.VRRP) {
		r.discard("VRRP settings")
		r.VRRP = ""
	}
	slices.Sort(r.invalid)
}

func (r *record) discard(format string, args ...any) {
	r.invalid = append(r.invalid, fmt.Sprintf(format, args...))
}

// sanitizeAddresses returns the usable addresses, each once, in order.
func (r *record) sanitizeAddresses(what string, list []netip.Addr) []netip.Addr {
	var out []netip.Addr
	seen := make(map[netip.Addr]bool, min(len(list), maxNodeAddresses))
	for i, a := range list {
		if len(out) == maxNodeAddresses {
			r.discard("%d of %d %s", len(list)-i, len(list), what)
			break
		}
		if !usable(a) {
			r.discard("address %.80s", a)
		} else if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// validRecords returns the records whose names are valid in a configuration. The error
// lists some of the others, and of the left-out parts.
func validRecords(records []*record) (valid []*record, invalid int, err error) {
	var problems []string
	for _, r := range records {
		what := strings.Join(r.invalid[:min(len(r.invalid), 3)], ", ")
		if v1alpha1.ValidName(r.Name) {
			valid = append(valid, r)
		} else {
			what = "all of it"
		}
		if what != "" {
			problems = append(problems, fmt.Sprintf("node %.80q: %s", r.Name, what))
		}
	}
	if len(problems) > 0 {
		err = errors.New(summarize(problems))
	}
	return valid, len(problems), err
}
