// Package status shows a cluster at one look, offline, from what the agents of its nodes
// have published: which node holds each VIP, which nodes take no part and why, what they
// run, and where they disagree.
package status
