package render

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Preview gives the files that the agent writes on a node with the given facts,
// by their paths there, from the templates that are shipped.
func Preview(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]OutputFile, error) {
	type renderer func(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error)
	type job struct {
		path, template string
		render         renderer
	}
	var jobs []job
	if c.Spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		jobs = append(jobs, job{v1alpha1.KeepalivedConf, keepalived.Template, keepalived.Render})
		if n.Role == v1alpha1.RoleMaster || n.Role == v1alpha1.RoleArbiter {
			jobs = append(jobs, job{v1alpha1.HAProxyConf, haproxy.Template, haproxy.Render})
		}
	}
	jobs = append(jobs,
		job{v1alpha1.Corefile, coredns.Template, coredns.Render},
		job{v1alpha1.HostsFile, coredns.HostsTemplate, coredns.RenderHosts})
	var out []OutputFile
	for _, j := range jobs {
		data, err := j.render(j.template, c, n)
		if err != nil {
			return nil, err
		}
		out = append(out, OutputFile{Path: j.path, Data: data})
	}
	return out, nil
}

// Complete fills in what the cluster's own files say of a node: its role and
// addresses, and the peers that were not given. iface is the interface of
// addresses.
func Complete(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, iface string) error {
	for _, p := range c.Spec.Peers {
		if p.Name == n.Name {
			if n.Role == "" {
				n.Role = p.Role
			}
			if len(n.Interfaces) == 0 {
				n.Interfaces = []v1alpha1.Interface{{DefaultRoute4: true, DefaultRoute6: true, Addresses: withPrefixes(c, p.Addresses)}}
			}
			continue
		}
		if !slices.ContainsFunc(n.Peers, func(x v1alpha1.Peer) bool { return x.Name == p.Name }) {
			n.Peers = append(n.Peers, p)
		}
	}
	switch {
	case n.Role == "":
		return fmt.Errorf("the role of %s is not known: give --role", n.Name)
	case len(n.Interfaces) == 0:
		return fmt.Errorf("the address of %s is not known: give --address, such as 192.168.1.10/24", n.Name)
	case iface == "":
		return fmt.Errorf("the interface of %s is not known: give --interface, such as br-ex or ens192", n.Name)
	}
	n.Interfaces[0].Name = iface
	for i := range n.Peers {
		if n.Peers[i].Role == "" {
			n.Peers[i].Role = n.Role
		}
	}
	return nil
}

// withPrefixes gives addresses the prefix lengths of their machine networks.
func withPrefixes(c *v1alpha1.ClusterConfig, list []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range list {
		bits := a.BitLen()
		for _, n := range c.Spec.MachineNetworks {
			if n.Contains(a) {
				bits = n.Bits()
			}
		}
		out = append(out, netip.PrefixFrom(a, bits))
	}
	return out
}
