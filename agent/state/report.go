package state

import "time"

// ReportKind is the kind of a Report.
const ReportKind = "NodeStatus"

// Report is what `vipgen-agent status -o json` prints of a node: what its jobs have
// published, and of which agent and when that was read. A job that does not run is nil.
type Report struct {
	// Node is the name of the node; Version is that of the agent that was asked, and Time
	// when. Agents before these fields came print none of them.
	Node       string      `json:"node,omitempty"`
	Version    string      `json:"version,omitempty"`
	Time       time.Time   `json:"time,omitzero"`
	Keepalived *Keepalived `json:"keepalived,omitempty"`
	HAProxy    *HAProxy    `json:"haproxy,omitempty"`
	Firewall   *Firewall   `json:"firewall,omitempty"`
	CoreDNS    *CoreDNS    `json:"coredns,omitempty"`
	MDNS       *MDNS       `json:"mdns,omitempty"`
}

// Empty says whether no job has published anything.
func (r *Report) Empty() bool {
	return r.Keepalived == nil && r.HAProxy == nil && r.Firewall == nil && r.CoreDNS == nil && r.MDNS == nil
}
