package golden

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// names holds the expected answers of a node's DNS server: every name with its
// addresses of both families.
type names map[string][]netip.Addr

func (n names) add(name string, addresses ...netip.Addr) {
	for _, a := range addresses {
		if !slices.Contains(n[name], a) {
			n[name] = append(n[name], a)
		}
	}
}

// ownNames derives from the cluster and the node the names that the node's DNS server answers
// itself.
func ownNames(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node) names {
	all := names{}
	var own []netip.Addr
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			if v1alpha1.InNetworks(s.NodeNetworks(n.Interfaces), a.Addr()) {
				own = append(own, a.Addr())
			}
		}
	}
	for _, g := range s.Groups {
		if s.LoadBalancer == v1alpha1.LoadBalancerNone { // the names of a single node resolve to the node
			g.VIPs = own
		}
		switch g.Role {
		case v1alpha1.GroupAPI:
			if g.Name != v1alpha1.FirstAPI || s.DNS.External { // whose names are among the exact ones, or the site's
				continue
			}
			all.add("api."+s.Domain, g.VIPs...)
			all.add("api-int."+s.Domain, g.VIPs...)
		case v1alpha1.GroupIngress:
			for _, domain := range g.Domains {
				if s.DNS.External && domain == "apps."+s.Domain {
					continue
				}
				all.add("console."+domain, g.VIPs...)
				all.add("one.two."+domain, g.VIPs...)
			}
		}
	}
	for _, record := range records(s) {
		name := record.Name
		if domain, ok := strings.CutPrefix(name, "*."); ok {
			name = "any." + domain
		} else if vips, ok := wildcardOver(s, name); ok {
			all.add("below."+name, vips...)
		}
		all.add(name, record.Addresses...)
	}
	node := func(name string, addresses []netip.Addr) {
		short := strings.TrimSuffix(name, "."+s.Domain)
		all.add(short, addresses...)
		all.add(short+"."+s.Domain, addresses...)
	}
	if n.Role != v1alpha1.RoleBootstrap { // which is not a node
		node(n.Name, own)
	}
	for _, p := range n.Peers {
		if p.Role != v1alpha1.RoleBootstrap && !p.Unnamed {
			node(p.Name, p.Addresses)
		}
	}
	return all
}

// reverseNames derives the names of addresses: those of nodes and of API VIPs. foreign are
// other addresses that the cluster knows, and some that no node has.
func reverseNames(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node) (own map[netip.Addr][]string, foreign []netip.Addr) {
	own = map[netip.Addr][]string{}
	for name, addresses := range ownNames(s, n) {
		short := strings.TrimSuffix(name, "."+s.Domain)
		node := short == strings.TrimSuffix(n.Name, "."+s.Domain) ||
			slices.ContainsFunc(n.Peers, func(p v1alpha1.Peer) bool { return short == strings.TrimSuffix(p.Name, "."+s.Domain) })
		api := name == "api."+s.Domain || name == "api-int."+s.Domain ||
			slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.Names, name) })
		for _, a := range addresses {
			if node || api {
				own[a] = append(own[a], name)
			}
		}
	}
	foreign = []netip.Addr{netip.MustParseAddr("203.0.113.77"), netip.MustParseAddr("2001:db8:bad::77")}
	others := func(addresses []netip.Addr) {
		for _, a := range addresses {
			if own[a] == nil && !slices.Contains(foreign, a) {
				foreign = append(foreign, a)
			}
		}
	}
	for _, g := range s.Groups {
		others(g.VIPs)
	}
	for _, r := range s.DNS.Records {
		others(r.Addresses)
	}
	return own, foreign
}

// records are the user's, and the names of additional API VIPs.
func records(s *v1alpha1.ClusterConfigSpec) []v1alpha1.DNSRecord {
	out := slices.Clone(s.DNS.Records)
	for _, g := range s.Groups {
		for _, name := range g.Names {
			out = append(out, v1alpha1.DNSRecord{Name: name, Addresses: g.VIPs})
		}
	}
	return out
}

// wildcardOver returns the addresses of the longest wildcard that covers a name.
func wildcardOver(s *v1alpha1.ClusterConfigSpec, name string) (addresses []netip.Addr, ok bool) {
	longest := 0
	try := func(domain string, of []netip.Addr) {
		if strings.HasSuffix(name, "."+domain) && len(domain) > longest {
			longest, addresses = len(domain), of
		}
	}
	for _, g := range s.Groups {
		for _, domain := range g.Domains {
			try(domain, g.VIPs)
		}
	}
	for _, record := range s.DNS.Records {
		if domain, ok := strings.CutPrefix(record.Name, "*."); ok {
			try(domain, record.Addresses)
		}
	}
	return addresses, longest > 0
}

// foreignNames resemble the cluster's own: a "." of a pattern that matches any character, or a
// pattern without an anchor, would match them (hard case 17).
func foreignNames(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node) []string {
	d := s.Domain
	blurred := strings.Replace(d, ".", "x", 1)
	last := strings.LastIndexByte(d, '.')
	node := strings.TrimSuffix(n.Name, "."+d)
	var foreign []string
	for _, record := range records(s) {
		if _, covered := wildcardOver(s, record.Name); !covered && !strings.HasPrefix(record.Name, "*.") {
			foreign = append(foreign, "below."+record.Name, "x"+record.Name)
		}
	}
	if len(s.Groups) == 0 || s.DNS.External {
		foreign = append(foreign, "api."+d, "api-int."+d, "console.apps."+d)
	}
	for _, p := range n.Peers {
		if p.Unnamed { // vipgen chose the name, which may be in use
			foreign = append(foreign, p.Name, p.Name+"."+d)
		}
	}
	return append(foreign,
		"apix"+d, "xapi."+d, "api.x"+d, "api."+blurred, "api."+d[:last]+"x"+d[last+1:],
		"api-intx"+d, "xapi-int."+d, "apixint."+d,
		"api."+d+".example.net", "below.api."+d, "below.api-int."+d, "a."+d,
		d, "apps."+d, "fooxapps."+d, "foo.appsx"+d, "foo.apps."+blurred, "foo.xapps."+d,
		"foo.apps."+d+".example.net",
		"x"+node+"."+d, node+"x"+d, "below."+node+"."+d, node+"."+blurred,
		"www.example.org",
	)
}

// typed returns the answer to a query for A or AAAA, in the format and order of daemon.Answer.
func typed(addresses []netip.Addr, qtype string) []string {
	var out []string
	for _, a := range addresses {
		if a.Is4() == (qtype == "A") {
			out = append(out, qtype+" "+a.String())
		}
	}
	slices.Sort(out)
	return out
}
