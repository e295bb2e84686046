// Package openstack plans the settings of Neutron that a cluster's VIPs need (seed 002):
// Neutron drops packets of a port with an address that is not its own, unless the address is
// one of its allowed pairs.
package openstack

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/installconfig"
)

// Options are the facts that the cluster's files lack. Names are names or IDs in OpenStack.
type Options struct {
	// Ports are the nodes' ports.
	Ports []Port
	// VIPPorts are the ports that reserve the addresses of groups of VIPs.
	VIPPorts []VIPPort
	// FloatingIPs lead to the IPv4 VIPs of groups.
	FloatingIPs []FloatingIP
	// Network is the network for new ports of VIPs; empty where they exist.
	Network string
}

// Port is the port of a node of a pool.
type Port struct{ Role, Name string }

// VIPPort is the port of a group of VIPs.
type VIPPort struct{ Group, Name string }

// FloatingIP is a floating IP of a group of VIPs.
type FloatingIP struct {
	Group   string
	Address netip.Addr
}

// Plan holds the settings and their sources.
type Plan struct {
	Cluster string     `json:"cluster"`
	Network string     `json:"network,omitempty"`
	Ports   []NodePort `json:"ports"`
	VIPs    []VIP      `json:"vips"`
	hints   hints
}

// NodePort is a node's port with its allowed addresses besides its own.
type NodePort struct {
	Port    string       `json:"port"`
	Role    string       `json:"role"`
	Allowed []netip.Addr `json:"allowed"`
}

// VIP is a group of VIPs, which share a port.
type VIP struct {
	Group      string       `json:"group"`
	Addresses  []netip.Addr `json:"addresses"`
	Port       string       `json:"port,omitempty"`
	FloatingIP *netip.Addr  `json:"floatingIP,omitempty"`
	// InstallersDefault is set where the install-config does not have them.
	InstallersDefault bool `json:"installersDefault,omitempty"`
}

// Script returns a bash script of openstack commands, which prints them and runs them only on
// request.
func (p *Plan) Script() ([]byte, error) { return parsed.Run("hints.sh", &p.hints) }

// Terraform returns a configuration for Terraform or OpenTofu.
func (p *Plan) Terraform() ([]byte, error) { return parsed.Run("hints.tf", &p.hints) }

// Load plans the settings. The list has every problem and warning of the files and of the
// options; the plan is nil if one of them is an error. Problems of options have fields named
// like flags.
func Load(s render.Sources, o render.Options, x Options) (*Plan, problem.List) {
	in, list := render.Read(s)
	if in == nil {
		return nil, list
	}
	c, list, _ := in.Load(list, o)
	r := &resolver{in: in, x: x, c: c, Report: problem.Report{Locate: in.Locate}}
	r.options()
	var p *Plan
	if c != nil {
		p = r.plan()
	}
	list = append(list, r.List...).Final()
	if list.Err() != nil {
		return nil, list
	}
	return p, list
}

type resolver struct {
	in *render.Input
	x  Options
	c  *render.Cluster
	problem.Report
}

func (r *resolver) options() {
	if len(r.x.Ports)+len(r.x.VIPPorts)+len(r.x.FloatingIPs) == 0 && r.x.Network == "" {
		r.Add(problem.MissingField, "--port", "nothing", "the ports of the nodes, as --port POOL=NAME",
			"'openstack port list' has their names and IDs")
	}
	taken := map[string]bool{}
	once := func(flag, name string) {
		if taken[name] {
			r.Add(problem.BadName, flag, problem.Quote(name), "each port once", "")
		}
		taken[name] = true
	}
	for _, p := range r.x.Ports {
		r.name("--port", p.Name)
		once("--port", p.Name)
	}
	for _, p := range r.x.VIPPorts {
		r.name("--vip-port", p.Name)
		once("--vip-port", p.Name)
		if r.x.Network != "" && Name(p.Name).ID() {
			r.Add(problem.BadName, "--vip-port", problem.Quote(p.Name), "a name for a port to be made, not an ID", "without --network the port exists already")
		}
	}
	if r.x.Network != "" {
		r.name("--network", r.x.Network)
	}
	for _, f := range r.x.FloatingIPs {
		if why := v1alpha1.UsableAddress(f.Address); why != "" || !f.Address.Is4() {
			r.Add(problem.BadAddress, "--floating-ip", problem.Quote(f.Address.String())+", "+cmp.Or(why, "an IPv6 address"), "the IPv4 address of a floating IP", "")
		}
	}
}

// name checks a name or an ID: Neutron accepts up to 255 characters of any kind; here they must
// be printable, and the client must not take them for an option.
func (r *resolver) name(flag, s string) {
	printable := utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !strconv.IsPrint(c) })
	if s == "" || utf8.RuneCountInString(s) > 255 || s[0] == '-' || !printable {
		r.Add(problem.BadName, flag, problem.Quote(s), "a name or an ID of OpenStack, at most 255 characters that print, the first of them no hyphen", "")
	}
}

func (r *resolver) plan() *Plan {
	spec := &r.c.Config.Spec
	if spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		r.Add(problem.ConflictingFields, "spec.loadBalancer.type", string(spec.LoadBalancer), "VIPs on the nodes", "no port of a node needs address pairs then; one of a load balancer outside of the cluster does")
		return nil
	}
	p := &Plan{Cluster: spec.Domain, Network: r.x.Network, Ports: r.ports(), VIPs: r.vips()}
	p.hints = hints{Cluster: p.Cluster, Network: Name(r.x.Network)}
	for _, port := range p.Ports {
		p.hints.Ports = append(p.hints.Ports, hintPort{Name: Name(port.Port), VIPs: port.Allowed})
	}
	p.hints.VIPs = lists.Map(p.VIPs, r.hint)
	if r.x.Network != "" {
		p.hints.Subnets = lists.FlatMap(p.hints.VIPs, func(v hintVIP) []netip.Prefix {
			return lists.Map(v.Addresses, func(a hintAddress) netip.Prefix { return a.Subnet })
		})
		slices.SortFunc(p.hints.Subnets, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
		p.hints.Subnets = slices.Compact(p.hints.Subnets)
	}
	return p
}

// ports returns the nodes' ports with the VIPs that each can hold, by name.
func (r *resolver) ports() []NodePort {
	spec := &r.c.Config.Spec
	out := []NodePort{}
	given := map[string]bool{}
	for _, p := range r.x.Ports {
		given[p.Role] = true
		if p.Role != v1alpha1.RoleBootstrap && !slices.Contains(r.c.Roles, p.Role) {
			r.Add(problem.BadValue, "--port", problem.Quote(p.Role), "a pool of this cluster: "+strings.Join(r.c.Roles, ", "), "")
			continue
		}
		node := NodePort{Port: p.Name, Role: p.Role}
		for i := range spec.Groups {
			if g := &spec.Groups[i]; spec.Hosts(g, p.Role, nil) {
				node.Allowed = append(node.Allowed, g.VIPs...)
			}
		}
		if len(node.Allowed) == 0 {
			r.Add(problem.BadValue, "--port", problem.Quote(p.Role), "a pool whose nodes can hold a VIP", "")
		}
		out = append(out, node)
	}
	slices.SortFunc(out, func(a, b NodePort) int { return cmp.Compare(a.Port, b.Port) })
	if len(r.x.Ports) > 0 {
		r.left(given)
	}
	return out
}

// left warns of pools whose nodes can hold VIPs and have no ports here.
func (r *resolver) left(given map[string]bool) {
	spec := &r.c.Config.Spec
	for _, role := range r.c.Roles {
		if given[role] || role == v1alpha1.RoleBootstrap {
			continue
		}
		if n, known := r.c.Replicas[role]; known && n == 0 {
			continue
		}
		for i := range spec.Groups {
			if spec.Hosts(&spec.Groups[i], role, nil) {
				r.Problem(problem.Problem{Severity: problem.Warning, Code: problem.MissingField, Field: "--port",
					Found: "no port of pool " + role, Expected: "the ports of all nodes that can hold VIPs", Hint: "clients do not reach a VIP on another node"})
				break
			}
		}
	}
}

// vips returns the groups of VIPs with their ports and floating IPs.
func (r *resolver) vips() []VIP {
	groups := r.c.Config.Spec.Groups
	known := func(flag, group string) bool {
		if slices.ContainsFunc(groups, func(g v1alpha1.Group) bool { return g.Name == group }) {
			return true
		}
		names := lists.Map(groups, func(g v1alpha1.Group) string { return g.Name })
		r.Add(problem.BadValue, flag, problem.Quote(group), "a group of VIPs of this cluster: "+strings.Join(names, ", "), "")
		return false
	}
	ports, floating := map[string]string{}, map[string]netip.Addr{}
	for _, p := range r.x.VIPPorts {
		if known("--vip-port", p.Group) {
			if ports[p.Group] != "" {
				r.Add(problem.BadValue, "--vip-port", problem.Quote(p.Name), "one port for "+p.Group, "")
			}
			ports[p.Group] = p.Name
		}
	}
	for _, f := range r.x.FloatingIPs {
		if known("--floating-ip", f.Group) {
			if floating[f.Group].IsValid() {
				r.Add(problem.BadValue, "--floating-ip", f.Address.String(), "one floating IP for "+f.Group, "")
				continue
			}
			floating[f.Group] = f.Address
		}
	}
	out := []VIP{}
	for _, g := range groups {
		v := VIP{Group: g.Name, Addresses: g.VIPs, Port: ports[g.Name], InstallersDefault: !r.c.Given(&g)}
		if v.Port == "" && r.x.Network != "" {
			v.Port = r.c.Config.Metadata.Name + "-" + g.Name + "-port"
		}
		a, field := floating[g.Name], "--floating-ip"
		if !a.IsValid() {
			a, field = r.fromFile(g.Name)
		}
		if a.IsValid() && r.floats(v, a, field) {
			v.FloatingIP = &a
		}
		out = append(out, v)
	}
	return out
}

func (r *resolver) fromFile(group string) (netip.Addr, string) {
	var a *installconfig.Address
	switch group {
	case v1alpha1.FirstAPI:
		a = r.in.Install.APIFloatingIP
	case "ingress":
		a = r.in.Install.IngressFloatingIP
	}
	if a == nil {
		return netip.Addr{}, ""
	}
	return a.Addr, a.Field
}

// floats reports whether a floating IP can lead to a group, and adds a problem if not. The
// installer attaches one of the install-config where no port is given.
func (r *resolver) floats(v VIP, a netip.Addr, field string) bool {
	switch {
	case v.Port == "" && field != "--floating-ip":
		return false
	case v.Port == "":
		r.Add(problem.MissingField, "--vip-port", "no port of "+v.Group, "the port that "+a.String()+" is to lead to, as --vip-port "+v.Group+"=NAME", "")
		return false
	case !a.Is4():
		if field != "--floating-ip" { // those are checked already
			r.Add(problem.BadAddress, field, problem.Quote(a.String())+", an IPv6 address", "the IPv4 address of a floating IP", "")
		}
		return false
	case !fixed(v.Addresses).IsValid():
		r.Add(problem.BadValue, field, a.String(), "no floating IP: "+v.Group+" has no IPv4 VIP", "")
		return false
	}
	for _, g := range r.c.Config.Spec.Groups {
		if slices.Contains(g.VIPs, a) {
			r.Add(problem.VIPTaken, field, a.String(), "an address outside of the cluster, this is a VIP of "+g.Name, "")
			return false
		}
	}
	return true
}

func fixed(vips []netip.Addr) netip.Addr {
	for _, a := range vips {
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// hint returns a group in the templates' form.
func (r *resolver) hint(v VIP) hintVIP {
	out := hintVIP{Group: v.Group, Port: Name(v.Port)}
	if v.FloatingIP != nil {
		out.FloatingIP, out.Fixed = *v.FloatingIP, fixed(v.Addresses)
	}
	for _, a := range v.Addresses {
		address := hintAddress{Addr: a}
		for _, n := range r.c.Config.Spec.MachineNetworks {
			if n.Contains(a) {
				address.Subnet = n
			}
		}
		if !address.Subnet.IsValid() {
			// Impossible: VIPs that nodes hold are in machine networks.
			r.Add(problem.VIPOutsideNetwork, "networking.machineNetwork", fmt.Sprint(a), "a network with this VIP", "")
		}
		out.Addresses = append(out.Addresses, address)
	}
	return out
}
