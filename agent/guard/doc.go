// Package guard keeps VRRP packets from keepalived that nobody of its groups can have
// sent. keepalived restarts its advertisement timer with every packet of its virtual
// router ID, also with those that it rejects, so that anybody who can reach the node
// could keep a holder from sending (hard case 35). An nftables table of the agent's
// own drops them before.
package guard
