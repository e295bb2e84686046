package resolvconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// most is the number of nameservers that glibc uses (MAXNS); it ignores others.
const most = 3

// prepend returns the configuration with the node's own DNS server first, then upstreams,
// three in all, and with the cluster's domain as the first search domain, each domain
// once. Options stay unchanged.
func (c Config) prepend(own netip.Addr, upstreams []netip.Addr, domain string) Config {
	servers := append([]netip.Addr{own}, upstreams...)
	return Config{
		Nameservers: servers[:min(len(servers), most)],
		Search:      withDomain(domain, c.Search),
		Options:     slices.Clone(c.Options),
	}
}

// withDomain prepends a domain to others, without duplicates and without the root, which
// NetworkManager writes for no domains.
func withDomain(domain string, others []string) []string {
	out := []string{domain}
	seen := map[string]bool{"": true, strings.ToLower(domain): true}
	for _, d := range others {
		key := strings.ToLower(strings.TrimSuffix(d, "."))
		if !seen[key] {
			seen[key] = true
			out = append(out, d)
		}
	}
	return out
}

func (c Config) marshal() []byte {
	var b strings.Builder
	b.WriteString("# Written by vipgen-agent resolv-conf from NetworkManager's resolv.conf.\n")
	if len(c.Search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.Search, " "))
	}
	for _, a := range c.Nameservers {
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	if len(c.Options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(c.Options, " "))
	}
	return []byte(b.String())
}

// resolvedDropIn makes systemd-resolved query the node's own DNS server for names of the
// cluster, and search the cluster's domain first. routed are further domains known only
// to the cluster ("~": route, do not search), searched the network's search domains after
// the cluster's. Other names stay with the servers of each link, so that they resolve
// even while the node's own server is away.
func resolvedDropIn(own netip.Addr, domain string, searched, routed []string) []byte {
	domains := withDomain(domain, searched)
	for _, d := range routed {
		if d != domain && !strings.HasSuffix(d, "."+domain) && !slices.Contains(domains, "~"+d) {
			domains = append(domains, "~"+d)
		}
	}
	return fmt.Appendf(nil, "# Written by vipgen-agent resolv-conf.\n[Resolve]\nDNS=%s\nDomains=%s\n", own, strings.Join(domains, " "))
}
