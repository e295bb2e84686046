// Package firewall sends what a client addresses to the API VIP on to HAProxy:
// VIP:6443 to port 9445 of the node's own address on the node that has the VIP, for
// connections from other machines (prerouting) and from the node itself (output), IPv4 and
// IPv6. When a VIP leaves the node, its connections are ended.
//
// The rules are nftables in the table "inet vipgen", which nothing else uses; of others,
// only the redirect of OpenShift's own haproxy-monitor is removed. They need CAP_NET_ADMIN
// and no program.
//
// [Keeper] keeps the redirect in place while HAProxy serves, in the network namespace of
// the calling thread.
package firewall
