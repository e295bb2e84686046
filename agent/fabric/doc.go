// Package fabric checks whether a network lets an address move between two nodes, and how
// fast, before VIPs depend on it.
//
// One node drives the check and the other one serves it, over one TCP connection. They
// hold an unused address in turn, announce it in each form that exists, and observe what
// of it arrives at the other node. Nothing but the address moves: switches see no MAC
// address at another port.
package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/netdump"
)

// DefaultPort is the usual TCP port between the nodes, next to those of vipgen-agent.
const DefaultPort = 9460

// Options holds the settings of either node.
type Options struct {
	// Addresses are unused addresses of the nodes' subnets, one per family at most. Both nodes
	// must be given the same.
	Addresses []netip.Addr
	// Peer is the address of the other node.
	Peer netip.Addr
	Port int
	// VIPs are the cluster's VIPs, which are refused as addresses.
	VIPs []netip.Addr
	Log  *slog.Logger
}

// target is an address of the check, and the link where a node would hold it.
type target struct {
	address netip.Addr
	own     netip.Addr // of this node, in the same subnet
	subnet  netip.Prefix
	link    *net.Interface
}

// Validate reports why this node cannot use the addresses.
func (o Options) Validate() error {
	_, err := o.targets()
	return err
}

// targets validates the addresses against those of this node.
func (o Options) targets() (out []target, err error) {
	list, err := netdump.Addresses()
	if err != nil {
		return nil, fmt.Errorf("reading the addresses: %w", err)
	}
	var here []nodeAddress
	for _, a := range list {
		if ip := netdump.IP(a); ip.IsValid() && !ip.IsLoopback() {
			bits, _ := a.Mask.Size()
			usable := a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DEPRECATED|unix.IFA_F_DADFAILED) == 0
			here = append(here, nodeAddress{netip.PrefixFrom(ip, bits), a.LinkIndex, usable})
		}
	}
	for i, a := range o.Addresses {
		if slices.ContainsFunc(o.Addresses[:i], func(b netip.Addr) bool { return b.Is4() == a.Is4() }) {
			return nil, errors.New("two addresses of one family: name one")
		}
		on, err := o.find(a, here)
		if err != nil {
			return nil, err
		}
		link, err := net.InterfaceByIndex(on.link)
		if err != nil {
			return nil, fmt.Errorf("reading the interface of %v: %w", on.prefix, err)
		}
		if len(link.HardwareAddr) != 6 {
			return nil, fmt.Errorf("%v is in the subnet of %s, which is not Ethernet: nothing to check", a, link.Name)
		}
		out = append(out, target{a, on.prefix.Addr(), on.prefix.Masked(), link})
	}
	return out, nil
}

type nodeAddress struct {
	prefix netip.Prefix
	link   int
	usable bool
}

// find returns the node's address in the subnet of a, or why a cannot be used.
func (o Options) find(a netip.Addr, here []nodeAddress) (on nodeAddress, err error) {
	switch {
	case slices.Contains(o.VIPs, a):
		return on, fmt.Errorf("%v is a VIP of this cluster: name an address that is not in use", a)
	case slices.ContainsFunc(here, func(n nodeAddress) bool { return n.prefix.Addr() == a }):
		return on, fmt.Errorf("this node has %v already: name an address that is not in use", a)
	case a == o.Peer:
		return on, fmt.Errorf("%v is the peer's address: name an address that is not in use", a)
	}
	i := slices.IndexFunc(here, func(n nodeAddress) bool {
		return n.usable && n.prefix.Contains(a) && !n.prefix.IsSingleIP() && !n.prefix.Addr().IsLinkLocalUnicast()
	})
	if i < 0 {
		texts := lists.Map(here, func(n nodeAddress) string { return n.prefix.String() })
		return on, fmt.Errorf("%v is in no subnet of this node, which has %s", a, cmp.Or(strings.Join(texts, ", "), "none"))
	}
	if on = here[i]; a == on.prefix.Masked().Addr() || a.Is4() && !on.prefix.Contains(a.Next()) {
		return on, fmt.Errorf("%v is no address of a host of %v", a, on.prefix.Masked())
	}
	return on, nil
}
