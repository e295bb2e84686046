// Package externallb works out what a load balancer outside of a cluster has to do
// (seeds 001 and 003): which ports, for whom, to which hosts of the cluster, and
// how it asks whether they are well. From that it makes the configurations of
// HAProxy, and of keepalived for a pair of such hosts.
package externallb
