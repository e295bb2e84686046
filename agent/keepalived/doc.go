// Package keepalived implements the job that runs keepalived on a node: it decides
// whether the node takes part in VRRP elections, keeps keepalived.conf current, and
// removes VIPs that the node does not hold.
package keepalived
