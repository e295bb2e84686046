// Package nodes watches the cluster's Nodes, and the router pods of one node,
// for the agent's jobs: who the peers are, whether this node is registered, and
// which ingress controllers have a ready router here.
//
// It reads through the local API server first and never depends on the VIP that
// the answer decides on (hard case 5). What it last knew stays on disk, so that
// an agent that starts while the API is away goes on where it was (hard case
// 19). Bursts of changes come out as few (hard case 20).
package nodes
