// Package externallb tests a pair of load balancers outside of the cluster, with the units and
// files that vipgen renders for them, under traffic.
package externallb
