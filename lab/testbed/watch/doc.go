// Package watch records which nodes hold a VIP at which time, in two views: by the addresses of
// each node ([Addresses]), and by the packets that nodes send over the bridge: VRRP advertisements,
// ARP and neighbour discovery ([Capture]).
package watch
