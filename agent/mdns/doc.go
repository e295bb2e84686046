// Package mdns names nodes before an API server is available: a publisher publishes
// <host>.local and a workstation service for the node's addresses on the node's link, and
// a resolver collects those of others. A [Job] runs both for a node, and publishes the
// result to the agent's other jobs.
//
// It uses Multicast DNS (RFC 6762) and service discovery (RFC 6763), on IPv4, IPv6 or
// both, and needs no capability. Messages are those of github.com/miekg/dns. Names of
// nodes are fixed: a conflict is reported, and never solved by another name.
package mdns
