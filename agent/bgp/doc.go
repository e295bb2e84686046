// Package bgp makes this node's VIPs known to routers while their services are healthy: by
// BGP sessions of its own, or in a routing table for a speaker that the node has already.
package bgp
