// Package health checks the services of the node: it probes them several times a second
// over connections that stay open, combines the results with facts from other parts of
// the agent, and writes the track files that keepalived watches.
package health
