package installconfig

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// The installer's defaults; those of pods and services are IPv4 and so only
// for clusters that have IPv4 at all.
var (
	defaultMachineNetwork = netip.MustParsePrefix("10.0.0.0/16")
	defaultClusterNetwork = netip.MustParsePrefix("10.128.0.0/14")
	defaultServiceNetwork = netip.MustParsePrefix("172.30.0.0/16")
)

// defaultNetworkType is the installer's since 4.12.
const defaultNetworkType = "OVNKubernetes"

func (r *reader) networks(c *InstallConfig, in *fileNetworks) {
	c.MachineNetworks = r.machineNetworks(in)

	cluster, field := in.ClusterNetwork, "networking.clusterNetwork"
	if len(in.ClusterNetworks) > 0 {
		r.deprecated("networking.clusterNetworks", "an old spelling", "clusterNetwork")
		if len(cluster) == 0 {
			cluster, field = in.ClusterNetworks, "networking.clusterNetworks"
		}
	}
	c.ClusterNetworks = r.cidrs(cluster, field)

	for i, p := range in.ServiceNetwork {
		c.ServiceNetworks = r.network(c.ServiceNetworks, p, fmt.Sprintf("networking.serviceNetwork[%d]", i))
	}
	if in.ServiceCIDR.IsValid() {
		r.deprecated("networking.serviceCIDR", "an old spelling", "serviceNetwork")
		if len(in.ServiceNetwork) == 0 {
			c.ServiceNetworks = r.network(nil, in.ServiceCIDR, "networking.serviceCIDR")
		}
	}
	if slices.ContainsFunc(c.MachineNetworks, func(n Network) bool { return n.Addr().Is4() }) {
		if len(cluster) == 0 {
			c.ClusterNetworks = []Network{{defaultClusterNetwork, "networking.clusterNetwork", true}}
		}
		if len(in.ServiceNetwork) == 0 && !in.ServiceCIDR.IsValid() {
			c.ServiceNetworks = []Network{{defaultServiceNetwork, "networking.serviceNetwork", true}}
		}
	}
	r.overlaps(slices.Concat(c.MachineNetworks, c.ServiceNetworks, c.ClusterNetworks))
	c.NetworkType = r.networkType(in)
}

// overlaps reports networks that have addresses in common, as the installer does (its
// pkg/types/validation/installconfig.go, validateMachineNetwork and so on): each once, at
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

// machineNetworks knows the old machineCIDR, which may be next to the list
// only when it is the list's first network.
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
		return []Network{{defaultMachineNetwork, "networking.machineNetwork", true}}
	case old.IsValid() && in.MachineNetwork[0].CIDR.IsValid() && old != in.MachineNetwork[0].CIDR:
		r.add(problem.ConflictingFields, "networking.machineCIDR", problem.Quote(old.String()),
			fmt.Sprintf("%q, as in machineNetwork[0]", in.MachineNetwork[0].CIDR), "remove machineCIDR")
	}
	return networks
}

func (r *reader) cidrs(in []fileNetwork, field string) []Network {
	var networks []Network
	for i, n := range in {
		item := fmt.Sprintf("%s[%d]", field, i)
		if !n.CIDR.IsValid() {
			r.missing(item+".cidr", "a network, such as 192.0.2.0/24", item)
			continue
		}
		networks = r.network(networks, n.CIDR, item+".cidr")
	}
	return networks
}

// network appends a network if it is one: with no host bits, of addresses
// that hosts can have.
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
