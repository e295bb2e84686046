// Package resolvconf makes the node's own DNS server the first one for every program on
// the node: in /etc/resolv.conf, or in a drop-in of systemd-resolved where that is used.
// Other name servers come from NetworkManager's resolv.conf (hard case 16).
package resolvconf
