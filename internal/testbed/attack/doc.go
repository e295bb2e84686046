// Package attack is a hostile host on the network of a cluster, and a Node whose
// kubelet writes anything: what tests and chaos try against the agent.
package attack
