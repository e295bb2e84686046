// Package metallb decides how MetalLB gives the API of a cluster one more address
// (seed 000), from the cluster's input and a request, and checks both.
package metallb

import "github.com/vipgen/vipgen/templates/metallb"

// Ways to announce an address.
const (
	ModeL2  = "l2"
	ModeBGP = "bgp"
)

// Prefixes of MetalLB's annotations. The second is that of MetalLB before 0.14.9.
const (
	Prefix    = "metallb.io"
	OldPrefix = "metallb.universe.tf"
)

// Usual names and places.
const (
	DefaultName            = "api-vip"
	DefaultNamespace       = "openshift-config" // in every OpenShift cluster
	DefaultSystemNamespace = "metallb-system"
	defaultBGPPort         = 179
)

// Request is what a user asks for, as written. Each field is a flag of `vipgen
// metallb`; empty means the default.
type Request struct {
	Addresses       []string
	Name            string
	Namespace       string
	SystemNamespace string
	// Pool is an IPAddressPool that is there already.
	Pool string
	// Port is what clients connect to; the API's own if 0.
	Port int
	// Mode is ModeL2 or ModeBGP; by default what Peers say.
	Mode           string
	Interfaces     []string
	NodeLabels     []string // key=value
	ASN            uint32
	Peers          []string // address[:port]=ASN
	PasswordSecret string
	Nodes          []string // [name=]address[,address]
	Selector       []string // key=value
	// Endpoints asks for Endpoints in place of an EndpointSlice.
	Endpoints        bool
	AnnotationPrefix string
	Hostnames        []string
	// Secret has the certificate for Hostnames; <name>-certificate if empty.
	Secret string
}

// Plan is a request that can be met.
type Plan struct {
	params metallb.Params
	// own: the pool and its advertisement are part of it.
	own, bgp, endpoints bool
}

// Objects makes the objects of the cluster, in the order in which they are applied.
func (p *Plan) Objects() ([]metallb.Object, error) {
	return p.params.Objects(p.own, p.bgp, p.endpoints)
}

// Certificate says what clients need, in comments, with the APIServer object for
// names that are in no certificate yet.
func (p *Plan) Certificate() ([]byte, error) { return p.params.Certificate() }

// NeedsCertificate reports whether there is such an object.
func (p *Plan) NeedsCertificate() bool { return len(p.params.Hostnames) > 0 }

// ClientNames are the names that clients may use.
func (p *Plan) ClientNames() []string { return p.params.ClientNames() }
