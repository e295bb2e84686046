// Package resolvconf puts the node's own DNS server first for every program on
// the node: in /etc/resolv.conf, or in a drop-in of systemd-resolved where that
// is in use. What else there is to ask comes from NetworkManager's resolv.conf
// (hard case 16).
package resolvconf
