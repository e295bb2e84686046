package nodeip

import "net/netip"

// Snapshot is what the kernel says about the network of this node at a moment.
type Snapshot struct {
	Links     []Link
	Addresses []Address // in the kernel's order, which puts primary ones first
	Routes    []Route   // of the main table, unicast
}

// Link is a network interface.
type Link struct {
	Index    int
	Name     string
	Up       bool // as the administrator wants it; a cable may be missing
	Loopback bool
}

// Address is an address of an interface.
type Address struct {
	Link   int // index
	Prefix netip.Prefix
	// Label is the name of the interface, or what stands in its place; the
	// kernel keeps one for IPv4 alone.
	Label string
	// Tentative: the kernel still asks whether another host has it (RFC 4862
	// section 5.4).
	Tentative bool
	// DADFailed: another host has it.
	DADFailed bool
	// Deprecated: not for new connections (RFC 4862 section 5.5.4).
	Deprecated bool
	// Temporary: an IPv6 privacy address, replaced every day (RFC 8981).
	Temporary bool
}

// Route is a way out of this node.
type Route struct {
	Link        int // index
	Destination netip.Prefix
	Gateway     netip.Addr // invalid for a network on the link itself
	Source      netip.Addr // preferred source address; invalid for none
	Metric      int        // lowest wins
	// Advertised says that a router advertisement brought it: to NetworkManager,
	// or to the kernel, which says of its own routes no more than that.
	Advertised bool
}

// isDefault says whether the route leads everywhere.
func (r Route) isDefault() bool { return r.Destination.Bits() == 0 }
