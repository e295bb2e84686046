// Package firewall redirects connections to the API VIP to HAProxy: VIP:6443 to port 9445
// of the node's own address, on the node with the VIP, for connections from other
// machines (prerouting) and from the node itself (output), IPv4 and IPv6. When a VIP
// leaves the node, its connections are ended.
//
// The rules are nftables in a table of their own, "inet vipgen"; of other tables, only
// the redirect of OpenShift's own haproxy-monitor is removed. They need CAP_NET_ADMIN and
// no program.
//
// [Keeper] keeps the redirect in place while HAProxy serves, in the network namespace of
// the calling thread.
package firewall
