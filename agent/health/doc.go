// Package health finds out what works on the node: it probes the local services
// several times a second over connections that stay open, gathers the results
// with what other parts of the agent know, and turns them into the track files
// that keepalived watches.
package health
