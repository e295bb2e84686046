package network

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Text writes a table.
func Text(to io.Writer, rules []Rule) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ROLE\tPROTOCOL\tPORT\tFROM\tTO\tFOR")
	for _, r := range rules {
		port, dest := "-", "the node"
		if r.Port != 0 {
			port = fmt.Sprint(r.Port)
		}
		if len(r.To) > 0 {
			dest = lists.Join(r.To, ", ")
		}
		from := r.From
		if len(r.Networks) > 0 {
			from += " (" + lists.Join(r.Networks, ", ") + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Role, r.Protocol, port, from, dest, r.For)
	}
	return w.Flush()
}

// NFT writes rules of nftables, for the chain input of a table inet filter that drops by
// default.
func NFT(to io.Writer, rules []Rule) error {
	var err error
	line := func(r Rule, match ...string) {
		match = append(match, protocol(r), "accept", "comment", fmt.Sprintf("%q", r.Role+": "+r.For))
		if err == nil {
			_, err = fmt.Fprintln(to, "add rule inet filter input", strings.Join(match, " "))
		}
	}
	for _, r := range rules {
		for _, f := range families(r) {
			var match []string
			if len(f.from) > 0 {
				match = append(match, f.name+" saddr { "+lists.Join(f.from, ", ")+" }")
			}
			if len(f.to) > 0 {
				match = append(match, f.name+" daddr { "+lists.Join(f.to, ", ")+" }")
			}
			line(r, match...)
		}
	}
	return err
}

// Firewalld writes commands that open a node's default zone permanently.
func Firewalld(to io.Writer, rules []Rule) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(to, "firewall-cmd --permanent "+format+"\n", args...)
		}
	}
	for _, r := range rules {
		what := fmt.Sprintf(`port port="%d" protocol="%s"`, r.Port, r.Protocol)
		if r.Port == 0 {
			what = fmt.Sprintf(`protocol value="%s"`, r.Protocol)
		}
		for _, f := range families(r) {
			if len(f.from)+len(f.to) == 0 {
				line(`--add-rich-rule='rule %s accept'`, what)
			}
			for _, p := range f.from {
				line(`--add-rich-rule='rule family="%s" source address="%s" %s accept'`, f.firewalld, p, what)
			}
			for _, a := range f.to {
				line(`--add-rich-rule='rule family="%s" destination address="%s" %s accept'`, f.firewalld, a, what)
			}
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(to, "firewall-cmd --reload")
	}
	return err
}

// family is a rule's part for one family, or for both where it has no addresses.
type family struct {
	name, firewalld string
	from            []netip.Prefix
	to              []netip.Addr
}

func families(r Rule) (out []family) {
	if len(r.Networks)+len(r.To) == 0 {
		return []family{{}}
	}
	for _, f := range []family{{name: "ip", firewalld: "ipv4"}, {name: "ip6", firewalld: "ipv6"}} {
		is4 := f.name == "ip"
		f.from = slices.DeleteFunc(slices.Clone(r.Networks), func(p netip.Prefix) bool { return p.Addr().Is4() != is4 })
		f.to = slices.DeleteFunc(slices.Clone(r.To), func(a netip.Addr) bool { return a.Is4() != is4 })
		if len(f.from)+len(f.to) > 0 {
			out = append(out, f)
		}
	}
	return out
}

func protocol(r Rule) string {
	switch r.Protocol {
	case VRRP:
		return fmt.Sprint("meta l4proto ", vrrp.Protocol) // /etc/protocols may be missing
	case icmp6:
		return "meta l4proto " + icmp6 // nftables knows it
	}
	return fmt.Sprintf("%s dport %d", r.Protocol, r.Port)
}
