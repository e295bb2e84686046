// Package bench measures what clients of a cluster's VIPs experience during faults and changes.
// Each [Scenario] runs several times on the same cluster, set up with each [Profile]: vipgen's own by VRRP or BGP,
// and the setup of on-premises clusters today. No step waits for a fixed time: a run starts when
// the cluster is healthy, and ends when clients get answers again.
package bench
