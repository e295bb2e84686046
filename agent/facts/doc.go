// Package facts gathers what a node template is executed with: cluster.yaml, the
// node's own addresses, the other nodes, the network's name servers. It says when
// any of them may have changed.
package facts
