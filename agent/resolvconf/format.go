package resolvconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// most is how many nameservers glibc asks (MAXNS); it ignores those beyond.
const most = 3

// prepend returns the configuration with the node's own DNS server first, then
// upstreams, three in all, and with the cluster's domain as the first to
// search, each domain once. Options stay as they are.
func (c Config) prepend(own netip.Addr, upstreams []netip.Addr, domain string) Config {
	servers := append([]netip.Addr{own}, upstreams...)
	return Config{
		Nameservers: servers[:min(len(servers), most)],
		Search:      withDomain(domain, c.Search),
		Options:     slices.Clone(c.Options),
	}
}

// withDomain puts a domain before others, without repeating any. The root, with
// which NetworkManager says that there are none, goes.
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

// marshal writes what Parse reads.
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

// resolvedDropIn makes systemd-resolved ask the node's own DNS server for names
// of the cluster, and search the cluster's domain first. routed are further
// domains whose names only the cluster knows ("~" says: route there, do not
// search), searched are those of the network to search after the cluster's. All
// other names stay with the servers that each link brings, so that they resolve
// also while the node's own server is away.
func resolvedDropIn(own netip.Addr, domain string, searched, routed []string) []byte {
	domains := withDomain(domain, searched)
	for _, d := range routed {
		if d != domain && !strings.HasSuffix(d, "."+domain) && !slices.Contains(domains, "~"+d) {
			domains = append(domains, "~"+d)
		}
	}
	return fmt.Appendf(nil, "# Written by vipgen-agent resolv-conf.\n[Resolve]\nDNS=%s\nDomains=%s\n", own, strings.Join(domains, " "))
}
