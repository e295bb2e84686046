package status

import (
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// Cluster is what the nodes say together.
type Cluster struct {
	// VIPs are those that nodes take part for, sorted.
	VIPs []VIP `json:"vips"`
	// Nodes are those that were read and those that an exported Node names, sorted.
	Nodes []Node `json:"nodes"`
	// Findings are what is wrong, by node and VIP; none if all is as it should be.
	Findings []Finding `json:"findings"`
}

// VIP is one of the cluster's.
type VIP struct {
	VIP netip.Addr `json:"vip"`
	// Instance is the name of its VRRP instance.
	Instance string `json:"instance"`
	// Holders are the nodes that say they hold it: one if all is well.
	Holders []string `json:"holders"`
	// Members are the nodes that take part for it: holders first, then by priority.
	Members []Member `json:"members"`
}

// Member is a node that takes part for a VIP.
type Member struct {
	Node     string `json:"node"`
	Priority int    `json:"priority"`
	// Fault says that the node cannot hold the VIP, for Vetoes; Lacks are the terms of the
	// priority that are off.
	Fault  bool     `json:"fault,omitempty"`
	Vetoes []string `json:"vetoes,omitempty"`
	Lacks  []string `json:"lacks,omitempty"`
	// Peers is how many other nodes it knows for the VIP, and Holder the one that it hears,
	// by name or address; empty where it holds the VIP or hears none.
	Peers  int    `json:"peers"`
	Holder string `json:"holder,omitempty"`
}

// Node is a node of the cluster.
type Node struct {
	Name string `json:"name"`
	// Files are where its state was read; none for a node that only an exported Node names.
	Files []string `json:"files"`
	// Version is that of its agent, and Time when it was asked, where the state says so.
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Settings are its VRRP settings, as `vipgen-agent status` writes them; those of the
	// annotation of its Node where nothing else says them. WaitsFor is what a move to others
	// waits for, and MovesTo those.
	Settings string       `json:"settings,omitempty"`
	MovesTo  string       `json:"movesTo,omitempty"`
	WaitsFor string       `json:"waitsFor,omitempty"`
	Holds    []netip.Addr `json:"holds,omitempty"`
	// OwnRequests is which way programs of the node reach the API: OwnHAProxy or ByVIP;
	// empty where no state of keepalived was read.
	OwnRequests string `json:"ownRequests,omitempty"`
	// LeftOut are the reasons why it takes no part for VIPs of its role.
	LeftOut []string `json:"leftOut,omitempty"`
	// Jobs are what its jobs do, by name; a job without a state is missing.
	Jobs map[string]string `json:"jobs"`
	// Unhealthy are checks of the node's services that fail, with why.
	Unhealthy []string `json:"unhealthy,omitempty"`

	report state.Report
	// raw says that it was read from a copy of /run/vipgen, which does not say whether the
	// jobs still ran.
	raw bool
	// exported says that a Node of the cluster has that name.
	exported bool
}

// Which way programs of a node reach the API when they connect to a VIP.
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
)

// Finding is something that is wrong.
type Finding struct {
	Code Code `json:"code"`
	// Node and VIP are what it is about, where it is about one of them alone.
	Node string `json:"node,omitempty"`
	VIP  string `json:"vip,omitempty"`
	Text string `json:"text"`
}
