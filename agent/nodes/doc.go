// Package nodes watches the cluster's Nodes, and the router pods of this node, for the
// agent's jobs: the peers, whether this node is registered, and the ingress controllers
// with a ready router here.
//
// It reads from the local API server first and never depends on the VIP that it helps to
// elect (hard case 5). The last known state stays on disk for an agent that starts while
// the API is away (hard case 19). Bursts of changes are coalesced (hard case 20).
package nodes
