// Package attack is a hostile host on a cluster's network, and a Node with arbitrary content
// from its kubelet: the attacks on the agent in tests and chaos.
package attack
