// Package network writes what the network between nodes, clients and routers has to be
// configured with: the ports and protocols that firewalls must accept, from the nodes'
// configuration, and the sessions of routers that nodes announce VIPs to.
package network
