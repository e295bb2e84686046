// Package mdns gives nodes names before there is an API server to ask: a
// publisher publishes <host>.local and a workstation service for the node's
// addresses on the node's link, and a resolver collects what others publish. A
// [Job] runs both for a node, and tells the agent's other jobs.
//
// Both are Multicast DNS (RFC 6762) and service discovery (RFC 6763), on IPv4
// and IPv6 or whichever of them there is, and need no capability. Messages are
// github.com/miekg/dns. Names of nodes are fixed, so a conflict is reported and
// never solved by taking another name.
package mdns
