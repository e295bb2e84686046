// Package guard drops VRRP packets that no member of keepalived's groups can have sent.
// keepalived restarts its advertisement timer at every packet with its virtual router ID,
// even at those that it rejects, so that any host that reaches the node could keep a
// holder from sending (hard case 35). A separate nftables table drops them first.
package guard
