// Package watch tells who held a VIP when. It looks from two sides: at the
// addresses that each node has ([Addresses]), and at what the nodes tell the
// network over the bridge: VRRP adverts, ARP and neighbour discovery ([Capture]).
package watch
