// Package monitor serves the metrics and health of a job of the agent on loopback:
// /metrics for Prometheus, and /healthz.
package monitor
