// Package externallb plans a load balancer outside of a cluster (seeds 001 and 003): which
// ports, for which clients, to which hosts of the cluster, with which health checks. It renders
// the configurations of HAProxy, and of keepalived for a pair of such hosts.
package externallb
