package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Preview returns the files that the agent writes on a node with the given facts, by path, from
// the shipped templates.
func Preview(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]OutputFile, error) {
	type renderer func(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error)
	type job struct {
		path, template string
		render         renderer
	}
	var jobs []job
	if c.Spec.ByVRRP() {
		jobs = append(jobs, job{v1alpha1.KeepalivedConf, keepalived.Template, keepalived.Render})
	}
	if c.Spec.RunsHAProxy(n.Role) {
		jobs = append(jobs, job{v1alpha1.HAProxyConf, haproxy.Template, haproxy.Render})
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

// Complete adds the data about a node in the cluster's own files: its role and addresses, and
// missing peers. iface is the interface of addresses.
func Complete(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, iface string) error {
	if self := slices.IndexFunc(c.Spec.Peers, func(p v1alpha1.Peer) bool { return p.Name == n.Name }); self >= 0 {
		p := c.Spec.Peers[self]
		if n.Role = cmp.Or(n.Role, p.Role); contradicts(n.Role, p.Role) {
			return fmt.Errorf("--role %s: the input says that %s is a %s", n.Role, n.Name, p.Role)
		}
		if len(n.Interfaces) == 0 {
			n.Interfaces = []v1alpha1.Interface{{DefaultRoute4: true, DefaultRoute6: true, Addresses: c.Spec.WithNetworks(p.Addresses)}}
		}
	}
	known := append(slices.Clone(n.Peers), v1alpha1.Peer{Name: n.Name, Role: n.Role, Addresses: v1alpha1.OwnAddresses(n.Interfaces)})
	for _, p := range c.Spec.Peers {
		if !slices.ContainsFunc(known, func(k v1alpha1.Peer) bool { return k.Name == p.Name || sameNode(k, p) }) {
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

// contradicts reports whether a node's role differs from the input's. The rendezvous host is
// the bootstrap host at first; nodes of custom pools are workers there.
func contradicts(role, input string) bool {
	custom := !slices.Contains([]string{v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter}, role)
	return role != input && role != v1alpha1.RoleBootstrap && !(custom && input == v1alpha1.RoleWorker)
}

// sameNode reports whether two peers share an address, as a node and a host without a name in
// the input. The rendezvous host is both the bootstrap host and, later, a node.
func sameNode(a, b v1alpha1.Peer) bool {
	if (a.Role == v1alpha1.RoleBootstrap) != (b.Role == v1alpha1.RoleBootstrap) {
		return false
	}
	return slices.ContainsFunc(a.Addresses, func(x netip.Addr) bool { return slices.Contains(b.Addresses, x) })
}
