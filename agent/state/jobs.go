package state

import (
	"net/netip"
	"time"
)

// Job is the published state of a job, one type for each, which all that read it
// share. Its zero value knows the name of the job.
type Job interface {
	// JobName is that of its directory, too (v1alpha1.JobDir).
	JobName() string
}

// JobName is part of Job.
func (Keepalived) JobName() string { return "keepalived" }

// JobName is part of Job.
func (HAProxy) JobName() string { return "haproxy" }

// JobName is part of Job.
func (Firewall) JobName() string { return "firewall" }

// JobName is part of Job.
func (CoreDNS) JobName() string { return "coredns" }

// JobName is part of Job.
func (MDNS) JobName() string { return "mdns" }

// HAProxy is the state of the haproxy job.
type HAProxy struct {
	// Serving says that HAProxy is ready, with an API server that takes connections; Why says
	// why it is not.
	Serving bool `json:"serving"`
	// Ready says that an API server was ready when HAProxy was asked last, so that the node's
	// own connections are as well off here as with the holder of a VIP.
	Ready bool `json:"ready"`
	// Leaving says that it is being stopped, and serves until the VIPs are on other nodes.
	Leaving bool `json:"leaving,omitempty"`
	// Restarting says that it crashed within the last second, and is being started again
	// or was.
	Restarting bool      `json:"restarting,omitempty"`
	Why        string    `json:"why,omitempty"`
	Backends   []Backend `json:"backends,omitempty"`
	// Own says that it is for programs of this node alone, as on a compute node: the backends
	// are the HAProxy of control-plane nodes then.
	Own bool `json:"own,omitempty"`
	// Silenced are the servers that fell silent since the job began, by name.
	Silenced map[string]Silenced `json:"silenced,omitempty"`
	Daemon
}

// Silenced is what became of a server's connections when it fell silent.
type Silenced struct {
	// Times counts how often it did, Connections those that were ended then.
	Times       int `json:"times"`
	Connections int `json:"connections"`
}

// Backend is an API server as HAProxy sees it.
type Backend struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Up      bool   `json:"up"`
}

// Firewall is the state of the firewall job.
type Firewall struct {
	// InPlace says that every API VIP is redirected to HAProxy, in both families
	// and both hooks (hard case 6); Why says what keeps it from that.
	InPlace bool `json:"inPlace"`
	// VIPs are those that are redirected now.
	VIPs []netip.Addr `json:"vips,omitempty"`
	// Own says that connections of the node itself to them go to its HAProxy also while a
	// VIP is on another node.
	Own bool `json:"own"`
	// Serving says that HAProxy serves, as far as the job knows. Restarting says that it
	// crashed, and has not had the time to serve again: until it does, connections to the
	// VIPs reach the API server of the node.
	Serving    bool `json:"serving"`
	Restarting bool `json:"restarting,omitempty"`
	// Since is when InPlace last changed. Restored counts how often something else
	// had removed or changed the redirect.
	Since    time.Time `json:"since,omitzero"`
	Restored int       `json:"restored"`
	Why      string    `json:"why,omitempty"`
	// Operators names what the node still has of OpenShift's own redirect. It is removed
	// once this one is in place.
	Operators string `json:"operators,omitempty"`
}

// CoreDNS is the state of the coredns job.
type CoreDNS struct {
	// Serving says that CoreDNS answers for Name; Why says why it does not.
	Serving bool   `json:"serving"`
	Why     string `json:"why,omitempty"`
	// Name is that of the API, in the cluster's domain; empty until it is known.
	Name string `json:"name,omitempty"`
	// Upstreams are those that other names are asked of.
	Upstreams []string `json:"upstreams,omitempty"`
	// MDNS are the names of nodes that are known from mDNS alone, since the API
	// has not told of any yet.
	MDNS []string `json:"mdns,omitempty"`
	Daemon
}

// MDNS is the state of the mdns job.
type MDNS struct {
	// Name is the node's, <host>.local.
	Name string `json:"name"`
	// Announced says that the name is the node's and stands for Addresses on
	// Interface; Why says why it is not.
	Announced bool         `json:"announced"`
	Why       string       `json:"why,omitempty"`
	Interface string       `json:"interface,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Conflict is who else has the name.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Hosts are the others on the link, by name. Nobody vouches for them.
	Hosts []Host `json:"hosts,omitempty"`
	// Problem says what keeps others from being found, or what is wrong with
	// cluster.yaml.
	Problem string `json:"problem,omitempty"`
}

// Conflict is another on the link who has the host's name.
type Conflict struct {
	// Name is the name, such as master-0.local.
	Name string `json:"name"`
	// Theirs is the other's record, as zone files write it.
	Theirs string `json:"theirs"`
	// From is the address that it came from.
	From netip.Addr `json:"from"`
}

// Host is a machine that publishes the workstation service.
type Host struct {
	// Name is the host of <host>.local.
	Name string `json:"name"`
	// Addresses are all that it publishes but link-local ones, IPv4 first.
	Addresses []netip.Addr `json:"addresses,omitempty"`
}
