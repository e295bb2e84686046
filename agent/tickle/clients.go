package tickle

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/netdump"
)

// MaxClients bounds the connections that a holder reports to its peers, of all VIPs
// together: as many as HAProxy accepts (templates/haproxy).
const MaxClients = 20000

// maxPorts bounds the reported ports of a VIP: services have the lowest ones, programs of
// the node that connect from the VIP higher ones.
const maxPorts = 64

// Clients holds the connections to VIPs: for each VIP and port the clients' addresses and
// ports, sorted.
type Clients map[netip.Addr]map[uint16][]netip.AddrPort

// VIP is a VIP that this node may hold.
type VIP struct {
	Address netip.Addr
	// Source is the node's own address in the VIP's network, Peers are those of the other
	// nodes that may hold the VIP.
	Source netip.Addr
	Peers  []netip.Addr
	// Redirected maps ports of Source to the ports of the VIP redirected to them
	// (agent/firewall).
	Redirected map[uint16]uint16
}

// clientsOf lists the connections to VIPs among the addresses of this node, at most
// MaxClients. Connections of programs on the node are left out: they end with it.
func clientsOf(vips []VIP, here []netip.Addr) (Clients, error) {
	open, err := netdump.Established()
	return pick(open, vips, here), err
}

// pick returns the clients among all connections of the node. Every VIP on the node is a
// key, so that peers forget the list of an earlier holder.
func pick(open []netdump.Connection, vips []VIP, here []netip.Addr) Clients {
	out, count := Clients{}, 0
	held := slices.DeleteFunc(slices.Clone(vips), func(v VIP) bool { return !slices.Contains(here, v.Address) })
	for _, v := range held {
		out[v.Address] = map[uint16][]netip.AddrPort{}
	}
	for _, c := range open {
		own, client := c.Own, c.Peer
		if !isRemote(client) || slices.Contains(here, client.Addr()) {
			continue
		}
		for _, v := range held {
			port, redirected := v.Redirected[own.Port()]
			if own.Addr() == v.Address {
				port = own.Port()
			} else if !redirected || own.Addr() != v.Source {
				continue
			}
			if count++; count <= MaxClients {
				out[v.Address][port] = append(out[v.Address][port], client)
			}
		}
	}
	for _, ports := range out {
		for _, port := range slices.Sorted(maps.Keys(ports))[min(len(ports), maxPorts):] {
			delete(ports, port)
		}
		for _, clients := range ports {
			slices.SortFunc(clients, netip.AddrPort.Compare)
		}
	}
	return out
}

// isRemote reports whether a client may be on another machine.
func isRemote(client netip.AddrPort) bool {
	a := client.Addr()
	return a.IsGlobalUnicast() && !a.Is4In6() && a.Zone() == "" && client.Port() != 0
}

func count(ports map[uint16][]netip.AddrPort) (n int) {
	for _, clients := range ports {
		n += len(clients)
	}
	return n
}
