package coredns

import (
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	template "github.com/vipgen/vipgen/templates/coredns"
)

// Hosts on the link can publish anything by mDNS. There are few nodes before the API
// lists one; each has one or two addresses per family.
const (
	maxNeighbours = 256
	maxAddresses  = 8
)

// neighbours returns the nodes known only from mDNS; none once the API has listed a node,
// now or before this start, or while the mdns job does not run.
func (j *Job) neighbours(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []v1alpha1.Peer {
	if j.Source.Nodes != nil {
		if list := j.Source.Nodes.Current(); list.Registered || len(list.Peers) > 0 {
			return nil
		}
	}
	s, err := state.Read[state.MDNS](j.State)
	j.reading.Error(j.Log, err, "cannot read the state of the mdns job", "state of the mdns job read again")
	if s == nil {
		return nil
	}
	return neighbours(s.Hosts, c, n)
}

// neighbours returns the hosts that may be nodes: those with an unused name, by
// cluster.yaml and this node, and an unused address in the nodes' networks. Other
// addresses of a host are left out: avahi publishes VIPs, too.
//
// They are known as <host>, alone and in the cluster's domain, the later names of nodes
// called <host> or <host>.<cluster's domain> in the API. Names in other domains are left
// to the servers of that domain, not to hosts on the link.
func neighbours(hosts []state.Host, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []v1alpha1.Peer {
	names, addresses := taken(c, n)
	cluster := template.New(c, n)
	networks := c.Spec.NodeNetworks(n.Interfaces)
	var out []v1alpha1.Peer
	for _, h := range hosts {
		p := v1alpha1.Peer{Name: h.Name}
		full := h.Name + "." + c.Spec.Domain
		if !v1alpha1.ValidLabel(h.Name) || names[h.Name] || names[full] || cluster.Answers(h.Name) || cluster.Answers(full) {
			continue
		}
		for _, a := range h.Addresses {
			if v1alpha1.UsableAddress(a) == "" && v1alpha1.InNetworks(networks, a) && !addresses[a] && len(p.Addresses) < maxAddresses {
				p.Addresses = append(p.Addresses, a)
			}
		}
		if len(p.Addresses) > 0 {
			out = append(out, p)
		}
		if len(out) == maxNeighbours {
			break
		}
	}
	return out
}

// taken returns the names and addresses of no neighbour: this node's, those of nodes in
// cluster.yaml, and the VIPs. Names include the first label, the only one in mDNS.
func taken(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) (names map[string]bool, addresses map[netip.Addr]bool) {
	names, addresses = map[string]bool{}, map[netip.Addr]bool{}
	host := func(name string) {
		first, _, _ := strings.Cut(name, ".")
		names[name], names[first] = true, true
	}
	host(n.Name)
	for _, a := range v1alpha1.OwnAddresses(n.Interfaces) {
		addresses[a] = true
	}
	for _, p := range c.Spec.Peers {
		if p.Unnamed {
			continue // may be this neighbour
		}
		host(p.Name)
		for _, a := range p.Addresses {
			// The bootstrap may become a node with another name.
			addresses[a] = addresses[a] || p.Role != v1alpha1.RoleBootstrap
		}
	}
	for _, a := range nodeip.VIPs(&c.Spec) {
		addresses[a] = true
	}
	return names, addresses
}
