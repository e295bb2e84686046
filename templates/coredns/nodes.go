package coredns

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Nodes returns the data of the hosts file: every node by its name, and by its name in
// the cluster's domain. Names of nodes are arbitrary, so a node never gets a name that
// the cluster itself answers for (hard case 40), and of two nodes with the same name the
// one of the control plane gets it.
func Nodes(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) *Conf {
	d := &Conf{Cluster: c.Metadata.Name, Node: n.Name}
	whole := *c // names answered by an external DNS are the cluster's, too
	whole.Spec.DNS.External = false
	cluster := New(&whole, n)
	names, owner := hosts{}, map[string]string{}
	for _, p := range named(c, n) {
		short := strings.TrimSuffix(p.Name, "."+c.Spec.Domain)
		full := short + "." + c.Spec.Domain
		if p.Name == c.Spec.Domain || cluster.Answers(short) || cluster.Answers(full) {
			d.Refused = append(d.Refused, p.Name)
			continue
		}
		for _, name := range []string{short, full} {
			if by, taken := owner[name]; !taken || by == p.Name {
				owner[name] = p.Name
				names.add(name, p.Addresses)
			}
		}
	}
	slices.Sort(d.Refused)
	d.Hosts = names.sorted()
	return d
}

// named returns all nodes with a name, this one included, those of the control plane
// first.
func named(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []v1alpha1.Peer {
	self := v1alpha1.Peer{Name: n.Name, Role: n.Role}
	networks := c.Spec.NodeNetworks(n.Interfaces)
	self.Addresses = lists.Filter(v1alpha1.OwnAddresses(n.Interfaces), func(a netip.Addr) bool { return v1alpha1.InNetworks(networks, a) })
	if len(self.Addresses) == 0 && c.Spec.LoadBalancer == v1alpha1.LoadBalancerNone {
		self.Addresses = n.Own(networks)
	}
	others := lists.Filter(n.Peers, func(p v1alpha1.Peer) bool { return p.Name != n.Name })
	// The bootstrap host may be called localhost.
	all := slices.DeleteFunc(append([]v1alpha1.Peer{self}, others...), func(p v1alpha1.Peer) bool { return p.Unnamed || p.Role == v1alpha1.RoleBootstrap })
	first := func(p v1alpha1.Peer) int {
		if p.Role == v1alpha1.RoleMaster || p.Role == v1alpha1.RoleArbiter {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.Peer) int {
		return cmp.Or(first(a)-first(b), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Answers reports whether the Corefile answers for a name: an exact one, or the domain of
// a wildcard, or localhost, which every host resolves to itself.
func (d *Conf) Answers(name string) bool {
	return name == "localhost" ||
		slices.ContainsFunc(d.Hosts, func(h Host) bool { return slices.Contains(h.Names, name) }) ||
		slices.ContainsFunc(d.Wildcards, func(w Wildcard) bool { return name == w.Zone || w.covers(name) })
}

// hosts maps addresses to names; the first name is the result of a reverse lookup.
type hosts map[netip.Addr][]string

func (h hosts) add(name string, addresses []netip.Addr) {
	for _, a := range addresses {
		if !slices.Contains(h[a], name) {
			h[a] = append(h[a], name)
		}
	}
}

func (h hosts) sorted() []Host {
	out := make([]Host, 0, len(h))
	for a, names := range h {
		out = append(out, Host{Address: a, Names: names})
	}
	slices.SortFunc(out, func(a, b Host) int { return a.Address.Compare(b.Address) })
	return out
}
