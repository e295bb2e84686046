package installconfig

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func (r *reader) bareMetalHosts(in []fileBareMetalHost) []Host {
	var hosts []Host
	first := map[string]string{}
	for i, h := range in {
		field := fmt.Sprintf("platform.baremetal.hosts[%d]", i)
		if h.Name == "" {
			r.missing(field+".name", "the name of the host", field)
		}
		hosts = append(hosts, Host{
			Name:      r.hostName(field+".name", h.Name, first),
			Role:      r.role(field+".role", h.Role),
			Field:     field,
			Addresses: r.stateAddresses(field+".networkConfig", &h.NetworkConfig),
		})
	}
	return hosts
}

// vSphereRoles maps the roles of platform.vsphere.hosts, which lists hosts with static
// addresses.
var vSphereRoles = map[string]string{"": "", "bootstrap": "bootstrap", "control-plane": master, "compute": worker}

func (r *reader) vSphereHosts(in []fileVSphereHost) []Host {
	var hosts []Host
	for i, h := range in {
		field := fmt.Sprintf("platform.vsphere.hosts[%d]", i)
		role, ok := vSphereRoles[h.Role]
		if !ok {
			r.add(problem.BadValue, field+".role", problem.Quote(h.Role), "bootstrap, control-plane or compute", "")
		}
		host := Host{Role: role, Field: field}
		for j, p := range h.NetworkDevice.IPAddrs {
			if at := fmt.Sprintf("%s.networkDevice.ipAddrs[%d]", field, j); p.IsValid() && r.usable(p.Addr(), at) {
				host.Addresses = append(host.Addresses, Prefix{p, at})
			}
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// hostName returns a valid RFC 1123 host name that no earlier host has, or ""; first maps names
// to their fields.
func (r *reader) hostName(field, name string, first map[string]string) string {
	switch {
	case name == "":
		return ""
	case !v1alpha1.ValidName(name):
		r.add(problem.BadName, field, problem.Quote(name), nameRule, "")
		return ""
	case first[name] != "":
		r.duplicate(field, name, first[name])
		return ""
	}
	first[name] = field
	return name
}

func (r *reader) role(field, role string) string {
	switch role {
	case "", master, worker, arbiter:
		return role
	}
	r.add(problem.BadValue, field, problem.Quote(role), "master, worker or arbiter", "")
	return ""
}

// stateAddresses returns the static addresses of an NMState description, without loopback
// interfaces and those that are down or removed.
func (r *reader) stateAddresses(field string, in *fileState) []Prefix {
	var all []Prefix
	for i, iface := range in.Interfaces {
		if iface.Name == "lo" || iface.Type == "loopback" || iface.State == "down" || iface.State == "absent" {
			continue
		}
		at := fmt.Sprintf("%s.interfaces[%d]", field, i)
		all = append(all, r.stackAddresses(at+".ipv4", "IPv4", &iface.IPv4)...)
		all = append(all, r.stackAddresses(at+".ipv6", "IPv6", &iface.IPv6)...)
	}
	return all
}

// stackAddresses reads one family of an interface. With DHCP, NMState ignores the list.
func (r *reader) stackAddresses(field, want string, in *fileStateStack) []Prefix {
	if in.DHCP || in.Enabled != nil && !*in.Enabled {
		return nil
	}
	var all []Prefix
	for i, a := range in.Address {
		at := fmt.Sprintf("%s.address[%d]", field, i)
		switch {
		case !a.IP.IsValid():
			r.missing(at+".ip", "an "+want+" address", at)
		case Family(a.IP) != want:
			r.add(problem.BadAddress, at+".ip", problem.Quote(a.IP.String()), "an "+want+" address", "")
		case a.IP.Is6() && a.IP.Zone() == "" && a.IP.IsLinkLocalUnicast():
			// Valid on an interface, but never a node's address (hard case 10).
		case !r.usable(a.IP, at+".ip"):
		case a.PrefixLength == nil:
			r.missing(at+".prefix-length", "the length of the network's prefix")
		case *a.PrefixLength < 0 || *a.PrefixLength > a.IP.BitLen():
			r.add(problem.BadValue, at+".prefix-length", strconv.Quote(strconv.Itoa(*a.PrefixLength)),
				fmt.Sprintf("a number from 0 to %d", a.IP.BitLen()), "")
		default:
			all = append(all, Prefix{netip.PrefixFrom(a.IP, *a.PrefixLength), at + ".ip"})
		}
	}
	return all
}
