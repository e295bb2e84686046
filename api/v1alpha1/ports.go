package v1alpha1

import "net/netip"

// Fixed ports: RFC 1035 section 4.2, RFC 9110 section 4.2, RFC 6762 section 3.
const (
	DNSPort   = 53
	HTTPPort  = 80
	HTTPSPort = 443
	MDNSPort  = 5353
)

// ClientsPort is the port at which nodes exchange the clients of their VIPs (agent/tickle).
const ClientsPort = 9459

// The groups of Multicast DNS (RFC 6762 section 3).
var (
	MDNSGroup4 = netip.MustParseAddr("224.0.0.251")
	MDNSGroup6 = netip.MustParseAddr("ff02::fb")
)
