// Package facts collects the input of node templates: cluster.yaml, the node's own
// addresses, the other nodes, the network's name servers. It notifies of possible
// changes.
package facts
