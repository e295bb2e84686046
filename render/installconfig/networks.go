package installconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// The installer's defaults; those of pods and services are IPv4, for clusters with IPv4 only.
var (
	defaultMachineNetwork = netip.MustParsePrefix("10.0.0.0/16")
	defaultClusterNetwork = netip.MustParsePrefix("10.128.0.0/14")
	defaultServiceNetwork = netip.MustParsePrefix("172.30.0.0/16")
)

// defaultNetworkType is the installer's since 4.12.
const defaultNetworkType = "OVNKubernetes"

// defaultHostPrefix is the prefix length of a node's part of defaultClusterNetwork.
const defaultHostPrefix = 23

func (r *reader) networks(c *InstallConfig, in *fileNetworks) {
	c.MachineNetworks = r.machineNetworks(in)

	cluster, field := in.ClusterNetwork, "networking.clusterNetwork"
	if len(in.ClusterNetworks) > 0 {
		r.deprecated("networking.clusterNetworks", "an old spelling", "clusterNetwork")
		if len(cluster) == 0 {
			cluster, field = in.ClusterNetworks, "networking.clusterNetworks"
		}
	}
	c.NetworkType = r.networkType(in)
	c.ClusterNetworks = r.clusterNetworks(cluster, field, c.NetworkType)

	for i, p := range in.ServiceNetwork {
		c.ServiceNetworks = r.network(c.ServiceNetworks, p, fmt.Sprintf("networking.serviceNetwork[%d]", i))
	}
	if join := r.network(nil, in.OVNKubernetes.IPv4.JoinSubnet, joinSubnet); len(join) > 0 {
		c.JoinNetwork = &join[0]
	}
	if in.ServiceCIDR.IsValid() {
		r.deprecated("networking.serviceCIDR", "an old spelling", "serviceNetwork")
		if len(in.ServiceNetwork) == 0 {
			c.ServiceNetworks = r.network(nil, in.ServiceCIDR, "networking.serviceCIDR")
		}
	}
	if slices.ContainsFunc(c.MachineNetworks, func(n Network) bool { return n.Addr().Is4() }) {
		if len(cluster) == 0 {
			c.ClusterNetworks = []Network{{Prefix: defaultClusterNetwork, Field: "networking.clusterNetwork", Default: true, HostPrefix: defaultHostPrefix}}
		}
		if len(in.ServiceNetwork) == 0 && !in.ServiceCIDR.IsValid() {
			c.ServiceNetworks = []Network{{Prefix: defaultServiceNetwork, Field: "networking.serviceNetwork", Default: true}}
		}
	}
	all := slices.Concat(c.MachineNetworks, c.ServiceNetworks, c.ClusterNetworks)
	if c.JoinNetwork != nil {
		all = append(all, *c.JoinNetwork)
		r.join(c)
	}
	r.overlaps(all)
	r.sizes(c.ServiceNetworks)
}

const joinSubnet = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"

// join checks OVN-Kubernetes' internal network (the installer's validateOVNKubernetesConfig and
// isV4NodeSubnetLargeEnough): it needs an address for each node that the cluster networks have
// room for.
func (r *reader) join(c *InstallConfig) {
	if !c.OVNKubernetes() {
		r.add(problem.ConflictingFields, "networking.ovnKubernetesConfig", "networkType "+c.NetworkType, "networkType: "+defaultNetworkType+" beside it", "")
	}
	nodes := 0
	if len(c.ClusterNetworks) == 0 { // the default of IPv6 machine networks
		nodes = 1 << (defaultHostPrefix - defaultClusterNetwork.Bits())
	}
	for _, n := range c.ClusterNetworks {
		if n.Addr().Is4() && n.HostPrefix >= n.Bits() {
			nodes += 1 << min(n.HostPrefix-n.Bits(), 32)
		}
	}
	if bits := c.JoinNetwork.Bits(); nodes >= 1<<(32-min(bits, 32))-3 {
		r.add(problem.BadNetwork, joinSubnet, problem.Quote(c.JoinNetwork.String()),
			fmt.Sprintf("a network with an address for each of the %d nodes that clusterNetwork has room for", nodes), "")
	}
}

// sizes checks service networks as the installer does (its pkg/validate,
// ServiceSubnetCIDR).
func (r *reader) sizes(list []Network) {
	for _, n := range list {
		least := 12
		if n.Addr().Is6() {
			least = 108
		}
		if n.Bits() < least {
			r.add(problem.BadNetwork, n.Field, problem.Quote(n.String()), fmt.Sprintf("a prefix of %d bits or more", least), "")
		}
	}
}

// clusterNetworks checks each node's share of a network, as the installer does (its
// validateClusterNetwork): network types other than OVN-Kubernetes may leave it out.
func (r *reader) clusterNetworks(in []fileClusterNetwork, field, networkType string) (list []Network) {
	for i, n := range in {
		item := fmt.Sprintf("%s[%d]", field, i)
		before := len(list)
		list = r.cidr(list, n.fileNetwork, item)
		if len(list) == before {
			continue
		}
		c := &list[before]
		c.HostPrefix = n.HostPrefix
		if n.HostPrefix == 0 && n.HostSubnetLength != 0 {
			c.HostPrefix = c.Addr().BitLen() - n.HostSubnetLength
		}
		least, most := c.Bits(), c.Addr().BitLen()
		if c.Addr().Is6() {
			least, most = max(least, 64), 64
		}
		expected := fmt.Sprintf("the prefix of each node's part of %s, from %d to %d bits", c, least, most)
		if least >= most {
			expected = fmt.Sprintf("%d, the prefix of each node's part of a network, in one of %d bits or fewer", most, most)
		}
		switch {
		case c.HostPrefix == 0 && isOVN(networkType):
			r.missing(item+".hostPrefix", expected, item)
		case c.HostPrefix != 0 && (c.HostPrefix < least || c.HostPrefix > most):
			r.add(problem.BadValue, item+".hostPrefix", fmt.Sprint(c.HostPrefix), expected, "")
		}
	}
	return list
}

// OVNKubernetes reports whether the network type is OVNKubernetes, in any case.
func (c *InstallConfig) OVNKubernetes() bool { return isOVN(c.NetworkType) }

func isOVN(networkType string) bool { return strings.EqualFold(networkType, defaultNetworkType) }

// overlaps reports networks with common addresses, as the installer does (its
// pkg/types/validation/installconfig.go, validateMachineNetwork and so on): each pair once, at
// the later one, or at the one that the file has.
func (r *reader) overlaps(list []Network) {
	for i, n := range list {
		for _, before := range list[:i] {
			if !n.Overlaps(before.Prefix) {
				continue
			}
			at, other := n, before
			if n.Default {
				at, other = before, n
			}
			of := other.Field
			if other.Default {
				of += ", the installer's default"
			}
			r.add(problem.NetworksOverlap, at.Field, problem.Quote(at.String()), "a network of its own", "it overlaps "+other.String()+" of "+of)
			break
		}
	}
}

func (r *reader) networkType(in *fileNetworks) string {
	if in.Type != "" {
		r.deprecated("networking.type", "an old spelling", "networkType")
	}
	switch {
	case in.NetworkType != "":
		return r.word("networking.networkType", in.NetworkType)
	case in.Type != "":
		return r.word("networking.type", in.Type)
	}
	return defaultNetworkType
}

// machineNetworks reads the list and the old machineCIDR, which must be the list's first
// network where both are set.
func (r *reader) machineNetworks(in *fileNetworks) []Network {
	networks := r.cidrs(in.MachineNetwork, "networking.machineNetwork")
	old := in.MachineCIDR
	if old.IsValid() {
		r.deprecated("networking.machineCIDR", "an old spelling", "machineNetwork")
	}
	switch {
	case len(in.MachineNetwork) == 0 && old.IsValid():
		return r.network(nil, old, "networking.machineCIDR")
	case len(in.MachineNetwork) == 0:
		return []Network{{Prefix: defaultMachineNetwork, Field: "networking.machineNetwork", Default: true}}
	case old.IsValid() && in.MachineNetwork[0].CIDR.IsValid() && old != in.MachineNetwork[0].CIDR:
		r.add(problem.ConflictingFields, "networking.machineCIDR", problem.Quote(old.String()),
			fmt.Sprintf("%q, as in machineNetwork[0]", in.MachineNetwork[0].CIDR), "remove machineCIDR")
	}
	return networks
}

func (r *reader) cidrs(in []fileNetwork, field string) []Network {
	var networks []Network
	for i, n := range in {
		networks = r.cidr(networks, n, fmt.Sprintf("%s[%d]", field, i))
	}
	return networks
}

func (r *reader) cidr(networks []Network, n fileNetwork, item string) []Network {
	if !n.CIDR.IsValid() {
		r.missing(item+".cidr", "a network, such as 192.0.2.0/24", item)
		return networks
	}
	return r.network(networks, n.CIDR, item+".cidr")
}

// network appends a valid network: without host bits, with addresses that hosts can have.
func (r *reader) network(networks []Network, p netip.Prefix, field string) []Network {
	if !p.IsValid() {
		return networks
	}
	if why := v1alpha1.UsableAddress(p.Addr()); why != "" {
		r.add(problem.BadNetwork, field, problem.Quote(p.String())+", "+why, "a network of unicast addresses", "")
		return networks
	}
	if p != p.Masked() {
		r.add(problem.BadNetwork, field, problem.Quote(p.String()),
			fmt.Sprintf("the network itself, %q", p.Masked()), "")
		return networks
	}
	return append(networks, Network{Prefix: p, Field: field})
}
