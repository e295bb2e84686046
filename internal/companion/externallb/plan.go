package externallb

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Services of a load balancer.
const (
	serveAPI           = "api"
	serveMachineConfig = "machine-config"
	serveIngress       = "ingress"
)

// Serves lists the services, in the order of output.
func Serves() []string { return []string{serveAPI, serveMachineConfig, serveIngress} }

// Options are the facts about a load balancer that the cluster's files lack.
type Options struct {
	// Nodes are nodes that are not in the files, or have other addresses there. A node without
	// a role is a control-plane node.
	Nodes []v1alpha1.Peer
	// Balancers are empty, or the two hosts of a pair that holds the VIPs by keepalived at
	// their Interface.
	Balancers []Balancer
	Interface string
	// APIVIPs and IngressVIPs are the load balancer's addresses, where they differ from the
	// files'.
	APIVIPs, IngressVIPs []netip.Addr
	// Allow holds networks that may read machine configs besides the machine
	// networks.
	Allow []netip.Prefix
	// Serve is a subset of Serves; empty means all.
	Serve []string
	// BootstrapGone leaves the bootstrap host out.
	BootstrapGone bool
	// RouterID of the pair; 0 means derived from the cluster's name.
	RouterID int
}

// Balancer is a host of a pair.
type Balancer struct {
	Name string
	// Addresses are its own, at most one of each family, with prefix lengths.
	Addresses []netip.Prefix
}

// Plan is the configuration of a load balancer.
type Plan struct {
	// Cluster is the cluster's domain.
	Cluster string `json:"cluster"`
	// DNS holds the names that clients use, with their addresses.
	DNS      []Name    `json:"dns"`
	Services []Service `json:"services"`
	// Pair is empty where the VIPs are held in another way.
	Pair []Host `json:"pair,omitempty"`

	proxy Proxy
	// Images are those of the daemons' containers.
	images v1alpha1.Images
}

// Name is a DNS name with the load balancer's addresses, none where they are unknown; "*."
// covers all names below.
type Name struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
}

// Host is a host of a pair.
type Host struct {
	Name      string         `json:"name"`
	Interface string         `json:"interface"`
	Addresses []netip.Prefix `json:"addresses"`
	RouterID  int            `json:"virtualRouterID"`

	keepalived Keepalived
}
