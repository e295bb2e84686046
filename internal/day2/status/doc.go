// Package status shows the state of a cluster, offline, from the published state of its agents:
// which node holds each VIP, which nodes take no part and why, what they run, and where they
// disagree.
package status
