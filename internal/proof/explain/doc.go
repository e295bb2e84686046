// Package explain answers questions about a cluster's VIPs: which nodes can hold them, what each check
// adds, what travels on the network, and what clients see when something fails. Every figure
// comes from the rendered output, or from the agent's own source.
package explain
