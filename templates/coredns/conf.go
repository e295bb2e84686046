// Package coredns renders the Corefile of a node and its hosts file from ClusterConfig
// and Node.
package coredns

import (
	_ "embed"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
)

// Template is the node template of the Corefile, as it is shipped.
//
//go:embed Corefile.tmpl
var Template string

// HostsTemplate is the node template of the hosts file. Names of nodes change often, and
// CoreDNS rereads this file without a restart.
//
//go:embed hosts.tmpl
var HostsTemplate string

// ttl is the TTL of every answer in seconds, about as long as a client may use an old
// address after a change of a VIP or a node. CoreDNS' cache, which comes first, keeps
// answers no longer; it does not cache shorter ones.
const ttl = 5

// maxUpstreams is the maximum of CoreDNS' forward plugin (hard case 16).
const maxUpstreams = 15

// Conf is the data of the templates.
type Conf struct {
	Cluster string
	Node    string
	// Listen are the addresses to listen at; empty means all of them, as a DNS VIP
	// requires, which comes and goes.
	Listen     []netip.Addr
	HealthPort int
	TTL        int
	HostsFile  string
	// Hosts are the names of nodes and API VIPs with their addresses, also for reverse
	// lookups; Wildcards answer for every name below a domain, the longest domain first.
	Hosts     []Host
	Wildcards []Wildcard
	Upstreams []netip.Addr
	// Refused are the nodes left out of the hosts file because of their names, sorted.
	Refused []string
}

// Host is an address with its names.
type Host struct {
	Address netip.Addr
	Names   []string
}

// Wildcard answers for every name below a domain, and for no other name, or for one exact
// name without a reverse lookup. CoreDNS evaluates templates before hosts, so a name
// below a wildcard needs a template itself to take precedence.
type Wildcard struct {
	// Zone is the domain, such as "apps.demo.example.com", or the name if Exact.
	Zone  string
	Exact bool
	// Pattern matches names as CoreDNS sees them: lower case with a trailing dot. It is
	// anchored, and its dots are literal (hard case 17).
	Pattern string
	// Answers are the addresses of A and AAAA records.
	A, AAAA []netip.Addr
}

// Owner returns CoreDNS' placeholder for the name of the question. It is not in the
// template because it looks like a directive of the node template.
func (Wildcard) Owner() string { return "{{ .Name }}" }

// New returns the data for a node.
func New(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) *Conf {
	d := &Conf{
		Cluster:    c.Metadata.Name,
		Node:       n.Name,
		HealthPort: c.Spec.Ports.CoreDNSHealth,
		TTL:        ttl,
		HostsFile:  v1alpha1.HostsFile,
		Upstreams:  upstreams(c, n),
	}
	names := hosts{}
	var api []v1alpha1.DNSRecord
	anyAddress := false
	for _, g := range c.Spec.Groups {
		if c.Spec.LoadBalancer == v1alpha1.LoadBalancerNone {
			g.VIPs = controlPlane(c, n)
		}
		switch g.Role {
		case v1alpha1.GroupAPI:
			for _, name := range c.Spec.APINames(&g) {
				if c.Spec.Answered(name) {
					names.add(name, g.VIPs)
					api = append(api, v1alpha1.DNSRecord{Name: name, Addresses: g.VIPs})
				}
			}
		case v1alpha1.GroupIngress:
			for _, domain := range g.Domains {
				if c.Spec.Answered(domain) {
					d.Wildcards = append(d.Wildcards, wildcard(domain, g.VIPs))
				}
			}
		case v1alpha1.GroupDNS:
			anyAddress = true
		}
	}
	for _, r := range c.Spec.DNS.Records {
		if domain, ok := strings.CutPrefix(r.Name, "*."); ok {
			d.Wildcards = append(d.Wildcards, wildcard(domain, r.Addresses))
		} else {
			d.Wildcards = append(d.Wildcards, exact(r.Name, r.Addresses))
		}
	}
	for _, r := range api {
		if slices.ContainsFunc(d.Wildcards, func(w Wildcard) bool { return w.covers(r.Name) }) {
			d.Wildcards = append(d.Wildcards, exact(r.Name, r.Addresses))
		}
	}
	// The first match answers, and domains may be nested.
	slices.SortStableFunc(d.Wildcards, func(a, b Wildcard) int { return len(b.Zone) - len(a.Zone) })
	d.Hosts = names.sorted()
	if !anyAddress {
		d.Listen = listen(n)
	}
	return d
}

// controlPlane returns the addresses of the only control-plane node, this one or a peer.
func controlPlane(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []netip.Addr {
	if n.Role == v1alpha1.RoleMaster || n.Role == v1alpha1.RoleBootstrap {
		return n.Own(c.Spec.NodeNetworks(n.Interfaces))
	}
	for _, p := range n.Peers {
		if p.Role == v1alpha1.RoleMaster {
			return p.Addresses
		}
	}
	return nil
}

// Render executes a node template of the Corefile.
func Render(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error) {
	return templates.Execute("Corefile.tmpl", text, New(c, n))
}

// RenderHosts executes a node template of the hosts file.
func RenderHosts(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error) {
	return templates.Execute("hosts.tmpl", text, Nodes(c, n))
}

func wildcard(domain string, addresses []netip.Addr) Wildcard {
	return answers(domain, `^.+\.`, addresses)
}

func exact(name string, addresses []netip.Addr) Wildcard {
	w := answers(name, "^", addresses)
	w.Exact = true
	return w
}

// covers reports whether the wildcard answers for a name below its domain.
func (w Wildcard) covers(name string) bool { return !w.Exact && strings.HasSuffix(name, "."+w.Zone) }

// answers returns the Wildcard for a domain with a prefix of the pattern.
func answers(domain, before string, addresses []netip.Addr) Wildcard {
	w := Wildcard{Zone: domain, Pattern: before + regexp.QuoteMeta(domain) + `\.$`}
	for _, a := range addresses {
		if a.Is4() {
			w.A = append(w.A, a)
		} else {
			w.AAAA = append(w.AAAA, a)
		}
	}
	return w
}

// upstreams returns the user's name servers, or the network's without those that would
// loop: the node itself, loopback and VIPs (hard case 16).
func upstreams(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []netip.Addr {
	from := c.Spec.DNS.Upstreams
	if len(from) == 0 {
		from = n.Upstreams
	}
	skip := map[netip.Addr]bool{}
	for _, a := range v1alpha1.OwnAddresses(n.Interfaces) {
		skip[a] = true
	}
	for _, g := range c.Spec.Groups {
		for _, v := range g.VIPs {
			skip[v] = true
		}
	}
	var out []netip.Addr
	for _, a := range from {
		if a = a.Unmap(); a.IsLoopback() || a.IsUnspecified() || skip[a] {
			continue
		}
		skip[a] = true
		if out = append(out, a); len(out) == maxUpstreams {
			break
		}
	}
	return out
}

// listen returns the node's own addresses and loopback; not all addresses, because
// systemd-resolved may listen at 127.0.0.53.
func listen(n *v1alpha1.Node) []netip.Addr {
	out := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	if !n.NoIPv6 {
		out = append(out, netip.IPv6Loopback())
	}
	out = append(out, v1alpha1.OwnAddresses(n.Interfaces)...)
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
