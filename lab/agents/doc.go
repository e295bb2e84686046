// Package agents tests the jobs of vipgen-agent in containers, as the pods and units that vipgen
// renders start them on a node.
package agents
