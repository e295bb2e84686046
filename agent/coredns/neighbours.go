package coredns

import (
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	template "github.com/vipgen/vipgen/templates/coredns"
)

// Whoever is on the link can say over mDNS what he likes. There are few nodes
// before the API knows of one; each has an address or two of either family.
const (
	maxNeighbours = 256
	maxAddresses  = 8
)

// neighbours are the nodes that are known over mDNS alone. There are none once
// the API has told of a node, live or before this start, and none while the
// mdns job does not run.
func (j *Job) neighbours(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) []v1alpha1.Peer {
	if j.Source.Nodes != nil {
		if list := j.Source.Nodes.Current(); list.Registered || len(list.Peers) > 0 {
			return nil
		}
	}
	s, err := state.Read[state.MDNS](j.State)
	j.reading.Error(j.Log, err, "what the mdns job says cannot be read", "what the mdns job says can be read again")
	if s == nil {
		return nil
	}
	return neighbours(s.Hosts, c, n)
}

// neighbours makes nodes of the hosts that may be some: those with a name that
// is nobody else's, as far as cluster.yaml and this node know, and an address
// in the nodes' networks that is neither. What is not such an address of a
// host is left out: avahi publishes VIPs as well.
//
// They are known as <host>, alone and in the cluster's domain, which is what the
// API will call nodes named <host> or <host>.<cluster's domain>. Names in other
// domains are for that domain's servers to answer, not for whoever is on the link.
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

// taken are the names and addresses that are no neighbour's: this node's, those
// of nodes that cluster.yaml knows, and the VIPs. Nodes have their first label as
// well, which is all that mDNS has.
func taken(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) (names map[string]bool, addresses map[netip.Addr]bool) {
	names, addresses = map[string]bool{}, map[netip.Addr]bool{}
	host := func(name string) {
		first, _, _ := strings.Cut(name, ".")
		names[name], names[first] = true, true
	}
	host(n.Name)
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			addresses[a.Addr()] = true
		}
	}
	for _, p := range c.Spec.Peers {
		if p.Unnamed {
			continue // it may be this neighbour
		}
		host(p.Name)
		for _, a := range p.Addresses {
			// The bootstrap may become a node of another name.
			addresses[a] = addresses[a] || p.Role != v1alpha1.RoleBootstrap
		}
	}
	for _, a := range nodeip.VIPs(&c.Spec) {
		addresses[a] = true
	}
	return names, addresses
}
