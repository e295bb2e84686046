// Package state publishes the states of the agent's jobs on a node, through files in
// directories that all containers mount, to other jobs, probes and the lab. Each job
// writes only to its own directory. A state counts only while its writer lives.
package state
