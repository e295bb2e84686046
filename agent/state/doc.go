// Package state is the published state of the agent's jobs on a node: what one
// container knows and the others read, the probes and the lab too, through files in
// directories that all mount. Each job writes to its own alone. What a file says counts
// only while its writer lives.
package state
