package tickle

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/netdump"
)

// MaxClients bounds of how many connections a holder tells its peers, all VIPs together:
// as many as HAProxy takes (templates/haproxy).
const MaxClients = 20000

// maxPorts bounds of how many ports of a VIP a holder tells: its services have the lowest ones,
// programs of the node that connect from the VIP others.
const maxPorts = 64

// Clients are the connections to VIPs: by VIP and its port, the clients' addresses and
// ports, sorted.
type Clients map[netip.Addr]map[uint16][]netip.AddrPort

// VIP is one that this node may hold.
type VIP struct {
	Address netip.Addr
	// Source is the node's own address in the VIP's network, and Peers are those of the
	// nodes that may hold the VIP as well.
	Source netip.Addr
	Peers  []netip.Addr
	// Redirected are ports of Source that connections to a port of the VIP are redirected
	// to (agent/firewall), with that port.
	Redirected map[uint16]uint16
}

// clientsOf lists the connections to those VIPs that are among the addresses of this node,
// at most MaxClients of them. Those of programs on the node itself are not listed: they
// end with it.
func clientsOf(vips []VIP, here []netip.Addr) (Clients, error) {
	open, err := netdump.Established()
	return pick(open, vips, here), err
}

// pick is clientsOf, of all connections of the node. Every VIP that is here is a key, so
// that peers forget what another holder told them.
func pick(open []netdump.Connection, vips []VIP, here []netip.Addr) Clients {
	out, count := Clients{}, 0
	held := slices.DeleteFunc(slices.Clone(vips), func(v VIP) bool { return !slices.Contains(here, v.Address) })
	for _, v := range held {
		out[v.Address] = map[uint16][]netip.AddrPort{}
	}
	for _, c := range open {
		own, client := c.Own, c.Peer
		if !outside(client) || slices.Contains(here, client.Addr()) {
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

// outside says whether that can be a client on another machine.
func outside(client netip.AddrPort) bool {
	a := client.Addr()
	return a.IsGlobalUnicast() && !a.Is4In6() && a.Zone() == "" && client.Port() != 0
}

// count is how many clients a VIP has.
func count(ports map[uint16][]netip.AddrPort) (n int) {
	for _, clients := range ports {
		n += len(clients)
	}
	return n
}
