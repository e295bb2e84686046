package state

import "time"

const ReportKind = "NodeStatus"

// Report is the output of `vipgen-agent status -o json`: the published states of a node's
// jobs; nil for a job that does not run.
type Report struct {
	// Node is the name of the node, Version that of its agent, and Time when the states
	// were read. Earlier agents do not print these.
	Node       string      `json:"node,omitempty"`
	Version    string      `json:"version,omitempty"`
	Time       time.Time   `json:"time,omitzero"`
	Keepalived *Keepalived `json:"keepalived,omitempty"`
	BGP        *BGP        `json:"bgp,omitempty"`
	HAProxy    *HAProxy    `json:"haproxy,omitempty"`
	Firewall   *Firewall   `json:"firewall,omitempty"`
	CoreDNS    *CoreDNS    `json:"coredns,omitempty"`
	MDNS       *MDNS       `json:"mdns,omitempty"`
}

// Empty reports whether no job has published a state.
func (r *Report) Empty() bool {
	return r.Keepalived == nil && r.BGP == nil && r.HAProxy == nil && r.Firewall == nil && r.CoreDNS == nil && r.MDNS == nil
}
