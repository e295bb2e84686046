// Package monitor serves what a job of the agent has to say about itself, on
// loopback: /metrics for Prometheus, and /healthz.
package monitor
