package externallb

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/externallb"
)

// What a load balancer can serve.
const (
	serveAPI           = "api"
	serveMachineConfig = "machine-config"
	serveIngress       = "ingress"
)

// Serves lists all of it, in the order of output.
func Serves() []string { return []string{serveAPI, serveMachineConfig, serveIngress} }

// Options are what a user says of a load balancer besides the cluster's files.
type Options struct {
	// Nodes are those that the files do not name, or name with other addresses. A
	// node without a role is one of the control plane.
	Nodes []v1alpha1.Peer
	// Balancers are none, or the two hosts of a pair that holds the VIPs by
	// keepalived at their Interface.
	Balancers []Balancer
	Interface string
	// APIVIPs and IngressVIPs are the load balancer's addresses, where they are not
	// those of the files.
	APIVIPs, IngressVIPs []netip.Addr
	// Allow holds networks that may read machine configs besides the machine
	// networks.
	Allow []netip.Prefix
	// Serve is some of Serves; empty means all.
	Serve []string
	// BootstrapGone leaves the bootstrap host out.
	BootstrapGone bool
	// RouterID of the pair; 0 means derived from the cluster's name.
	RouterID int
}

// Balancer is a host of a pair.
type Balancer struct {
	Name string
	// Addresses are its own, at most one of each family, with the lengths of their
	// networks.
	Addresses []netip.Prefix
}

// Plan is what a load balancer has to do.
type Plan struct {
	// Cluster is the cluster's domain.
	Cluster string `json:"cluster"`
	// DNS holds the names that clients use, where they have to lead to.
	DNS      []Name               `json:"dns"`
	Services []externallb.Service `json:"services"`
	// Pair is empty where the VIPs are held in another way.
	Pair []Host `json:"pair,omitempty"`

	proxy externallb.Proxy
	// Images run the daemons in containers.
	images v1alpha1.Images
}

// Name is a DNS name with the load balancer's addresses, none where they are not
// known; "*." stands for all names below.
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

	keepalived externallb.Keepalived
}
