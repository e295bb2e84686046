package state

import (
	"net/netip"
	"time"
)

// Job is the published state of a job, one type for each. The zero value returns the name
// of the job.
type Job interface {
	// JobName returns the name of the job and of its directory (v1alpha1.JobDir).
	JobName() string
}

// JobName implements Job.
func (Keepalived) JobName() string { return "keepalived" }

// JobName implements Job.
func (HAProxy) JobName() string { return "haproxy" }

// JobName implements Job.
func (Firewall) JobName() string { return "firewall" }

// JobName implements Job.
func (CoreDNS) JobName() string { return "coredns" }

// JobName implements Job.
func (MDNS) JobName() string { return "mdns" }

// HAProxy is the state of the haproxy job.
type HAProxy struct {
	// Serving reports that HAProxy is ready, with an API server that accepts connections;
	// Why is the reason if not.
	Serving bool `json:"serving"`
	// Ready reports that an API server was ready at the last poll, so that the node's own
	// connections are served as well here as by the holder of a VIP.
	Ready bool `json:"ready"`
	// Leaving reports that HAProxy is being stopped, and serves until the VIPs are on
	// other nodes.
	Leaving bool `json:"leaving,omitempty"`
	// Restarting reports that HAProxy crashed within the last second, and is restarting
	// or has restarted.
	Restarting bool      `json:"restarting,omitempty"`
	Why        string    `json:"why,omitempty"`
	Backends   []Backend `json:"backends,omitempty"`
	// Own reports that HAProxy serves only programs of this node, as on a compute node:
	// its backends are then the HAProxy of control-plane nodes.
	Own bool `json:"own,omitempty"`
	// Silenced are the servers that became silent since the job began, by name.
	Silenced map[string]Silenced `json:"silenced,omitempty"`
	Daemon
}

// Silenced counts the ended connections of a silent server.
type Silenced struct {
	// Times counts how often it became silent, Connections the connections ended.
	Times       int `json:"times"`
	Connections int `json:"connections"`
}

// Backend is an API server in HAProxy's view.
type Backend struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Up      bool   `json:"up"`
}

// Firewall is the state of the firewall job.
type Firewall struct {
	// InPlace reports that every API VIP is redirected to HAProxy, in both families and
	// hooks (hard case 6); Why is the reason if not.
	InPlace bool `json:"inPlace"`
	// VIPs are the redirected VIPs.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Own reports that the node's own connections to the VIPs go to its HAProxy even
	// while a VIP is on another node.
	Own bool `json:"own"`
	// Serving reports that HAProxy serves. Restarting reports that it crashed and still
	// has time to serve again: meanwhile connections to the VIPs reach the node's API
	// server.
	Serving    bool `json:"serving"`
	Restarting bool `json:"restarting,omitempty"`
	// Since is the time of the last change of InPlace. Restored counts how often the
	// redirect was restored after something else changed or removed it.
	Since    time.Time `json:"since,omitzero"`
	Restored int       `json:"restored"`
	Why      string    `json:"why,omitempty"`
	// Operators describes the rules of OpenShift's own redirect on the node, which are
	// removed once this one is in place.
	Operators string `json:"operators,omitempty"`
}

// CoreDNS is the state of the coredns job.
type CoreDNS struct {
	// Serving reports that CoreDNS answers for Name; Why is the reason if not.
	Serving bool   `json:"serving"`
	Why     string `json:"why,omitempty"`
	// Name is the name of the API in the cluster's domain; empty until known.
	Name string `json:"name,omitempty"`
	// Upstreams are the name servers for other names.
	Upstreams []string `json:"upstreams,omitempty"`
	// MDNS are the nodes known only from mDNS, because the API has not listed any yet.
	MDNS []string `json:"mdns,omitempty"`
	Daemon
}

// MDNS is the state of the mdns job.
type MDNS struct {
	// Name is the node's name, <host>.local.
	Name string `json:"name"`
	// Announced reports that the node owns the name, announced with Addresses on
	// Interface; Why is the reason if not.
	Announced bool         `json:"announced"`
	Why       string       `json:"why,omitempty"`
	Interface string       `json:"interface,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Conflict is another host with the name.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Hosts are the other hosts on the link, by name, unverified.
	Hosts []Host `json:"hosts,omitempty"`
	// Problem is a problem of the discovery or of cluster.yaml.
	Problem string `json:"problem,omitempty"`
}

// Conflict describes another host on the link with this host's name.
type Conflict struct {
	// Name is the name, such as master-0.local.
	Name string `json:"name"`
	// Theirs is the other host's record, in zone file syntax.
	Theirs string `json:"theirs"`
	// From is the sender's address.
	From netip.Addr `json:"from"`
}

// Host is a machine that publishes the workstation service.
type Host struct {
	// Name is the host of <host>.local.
	Name string `json:"name"`
	// Addresses are its published addresses except link-local ones, IPv4 first.
	Addresses []netip.Addr `json:"addresses,omitempty"`
}
