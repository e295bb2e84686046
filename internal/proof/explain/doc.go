// Package explain says of a cluster's VIPs what people ask: who can hold them,
// what each check adds, what travels on the network, and what clients see when
// something fails. Every figure comes from what is rendered, or from where the
// agent has it from.
package explain
