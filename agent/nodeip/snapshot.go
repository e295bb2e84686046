package nodeip

import "net/netip"

// Snapshot is the state of the node's network in the kernel.
type Snapshot struct {
	Links     []Link
	Addresses []Address // in the kernel's order, primary ones first
	Routes    []Route   // of the main table, unicast
}

// Link is a network interface.
type Link struct {
	Index    int
	Name     string
	Up       bool // administratively; a cable may be missing
	Loopback bool
}

// Address is an address of an interface.
type Address struct {
	Link   int // index
	Prefix netip.Prefix
	// Label is the label of the address, by default the interface name; the kernel keeps
	// one only for IPv4.
	Label string
	// Tentative: the kernel still checks for duplicates (RFC 4862 section 5.4).
	Tentative bool
	// DADFailed: another host has the address.
	DADFailed bool
	// Deprecated: not for new connections (RFC 4862 section 5.5.4).
	Deprecated bool
	// Temporary: an IPv6 privacy address, replaced every day (RFC 8981).
	Temporary bool
}

// Route is a route of the main table.
type Route struct {
	Link        int // index
	Destination netip.Prefix
	Gateway     netip.Addr // invalid for a network on the link itself
	Source      netip.Addr // preferred source address; invalid for none
	Metric      int        // lowest wins
	// Advertised reports that a router advertisement set the route: through
	// NetworkManager, or through the kernel, which marks its own routes no further.
	Advertised bool
}

func (r Route) isDefault() bool { return r.Destination.Bits() == 0 }
