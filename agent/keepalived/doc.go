// Package keepalived is the job that runs keepalived on a node: it decides
// whether the node takes part in electing who holds the VIPs, keeps
// keepalived.conf current, and sees to it that no VIP stays where it should not
// be.
package keepalived
