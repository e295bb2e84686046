// Package metallb plans how MetalLB announces an additional address for the API of a cluster
// (seed 000), from the cluster's input and a request, and checks both.
package metallb

// Modes of announcing an address.
const (
	ModeL2  = "l2"
	ModeBGP = "bgp"
)

// Prefixes of MetalLB's annotations. The second is that of MetalLB before 0.14.9.
const (
	Prefix    = "metallb.io"
	OldPrefix = "metallb.universe.tf"
)

// Default names.
const (
	DefaultName            = "api-vip"
	DefaultNamespace       = "openshift-config" // in every OpenShift cluster
	DefaultSystemNamespace = "metallb-system"
	defaultBGPPort         = 179
)

// Request is a user's request. Each field is a flag of `vipgen metallb`; empty means the
// default.
type Request struct {
	Addresses       []string
	Name            string
	Namespace       string
	SystemNamespace string
	// Pool is an existing IPAddressPool.
	Pool string
	// Port is the clients' port; the API's own if 0.
	Port int
	// Mode is ModeL2 or ModeBGP; by default derived from Peers.
	Mode             string
	Interfaces       []string
	NodeLabels       []string // key=value
	ASN              uint32
	Peers            []string // address[:port]=ASN
	PasswordSecret   string
	Nodes            []string // [name=]address[,address]
	Selector         []string // key=value
	AnnotationPrefix string
	Hostnames        []string
	// Secret has the certificate for Hostnames; <name>-certificate if empty.
	Secret string
}

// Plan is a valid request.
type Plan struct {
	params Params
	// own: includes the pool and its advertisement
	own, bgp bool
}

// NeedsCertificate reports whether there is such an object.
func (p *Plan) NeedsCertificate() bool { return len(p.params.Hostnames) > 0 }

// ClientNames returns the names that clients may use.
func (p *Plan) ClientNames() []string { return p.params.ClientNames() }
