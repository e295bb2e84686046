package status

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// Cluster is the combined status of the nodes.
type Cluster struct {
	// VIPs lists the VIPs that nodes take part for, sorted.
	VIPs []VIP `json:"vips"`
	// Nodes lists the nodes with state and those of exported Nodes, sorted.
	Nodes []Node `json:"nodes"`
	// Findings are problems, by node and VIP.
	Findings []Finding `json:"findings"`
}

// VIP is a VIP of the cluster.
type VIP struct {
	VIP netip.Addr `json:"vip"`
	// Instance is the name of its VRRP instance, or of its group where Routed.
	Instance string `json:"instance"`
	// Routed is set for a VIP that routers know: its holders are the nodes that announce it.
	Routed bool `json:"routed,omitempty"`
	// Holders are the nodes that report holding it: one if all is well, or any number where
	// Routed.
	Holders []string `json:"holders"`
	// Members are the nodes that take part for it: holders first, then by priority.
	Members []Member `json:"members"`
}

// Member is a node that takes part for a VIP.
type Member struct {
	Node     string `json:"node"`
	Priority int    `json:"priority"`
	// Preference belongs to a routed VIP: routers use the nodes with the lowest.
	Preference int `json:"preference,omitempty"`
	// Fault is set where the node cannot hold the VIP, because of Vetoes; Lacks are the missing
	// terms of the priority.
	Fault  bool     `json:"fault,omitempty"`
	Vetoes []string `json:"vetoes,omitempty"`
	Lacks  []string `json:"lacks,omitempty"`
	// Peers is the number of other nodes that it knows for the VIP, and Holder the current
	// holder, by name or address; empty where the node holds the VIP or receives no advert.
	Peers  int    `json:"peers"`
	Holder string `json:"holder,omitempty"`
}

// Node is a node of the cluster.
type Node struct {
	Name string `json:"name"`
	// Files are the sources of its state; none for a node of an exported Node only.
	Files []string `json:"files"`
	// Version is the version of its agent, and Time the time of the query, if known.
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Settings are its VRRP settings in the form of `vipgen-agent status`, or those of its
	// Node's annotation. WaitsFor is what a migration to
	// MigratesTo waits for.
	Settings   string       `json:"settings,omitempty"`
	MigratesTo string       `json:"movesTo,omitempty"`
	WaitsFor   string       `json:"waitsFor,omitempty"`
	Holds      []netip.Addr `json:"holds,omitempty"`
	// OwnRequests is the path of the node's programs to the API: OwnHAProxy or ByVIP; empty
	// without a state of keepalived.
	OwnRequests string `json:"ownRequests,omitempty"`
	// LeftOut are the reasons why it takes no part for VIPs of its role.
	LeftOut []string `json:"leftOut,omitempty"`
	// Jobs describes its jobs, by name; a job without a state is missing.
	Jobs map[string]string `json:"jobs"`
	// Unhealthy are failed checks of the node's services, with reasons.
	Unhealthy []string `json:"unhealthy,omitempty"`

	report state.Report
}

// Paths of a node's programs to the API when they connect to a VIP.
const (
	// ownHAProxy is the HAProxy of the node, wherever the VIP is.
	ownHAProxy = "own HAProxy"
	// byVIP is the holder of the VIP.
	byVIP = "VIP"
)

// Code names a kind of finding. Scripts match on it: it is never renamed.
type Code string

// Codes.
const (
	splitBrain       Code = "split-brain"
	noHolder         Code = "no-holder"
	missingState     Code = "missing-state"
	unreadable       Code = "unreadable-state"
	stale            Code = "stale-state"
	leftOut          Code = "left-out"
	settingsDiffer   Code = "settings-differ"
	versionsDiffer   Code = "versions-differ"
	peersDiffer      Code = "peers-differ"
	jobMissing       Code = "job-missing"
	notRunning       Code = "not-running"
	configRefused    Code = "config-refused"
	guardMissing     Code = "guard-missing"
	notServing       Code = "not-serving"
	backendDown      Code = "backend-down"
	redirectMissing  Code = "redirect-missing"
	redirectLeft     Code = "redirect-left"
	nameNotAnnounced Code = "name-not-announced"
	sessionDown      Code = "session-down"
	bfdDown          Code = "bfd-down"
	bgpProblem       Code = "bgp-problem"
)

// Finding is a problem.
type Finding struct {
	Code Code `json:"code"`
	// Node and VIP are set for a finding about one of them alone.
	Node string `json:"node,omitempty"`
	VIP  string `json:"vip,omitempty"`
	Text string `json:"text"`
	// Next is the next step for the user, where it depends on more than the code.
	Next string `json:"next,omitempty"`
}
