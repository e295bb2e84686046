// Package metallb makes the objects by which MetalLB gives the API of a cluster
// one more address (seed 000), and what clients need for their certificate check.
package metallb

import (
	"embed"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/manifest"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Names of the templates, which are also their file names without ".yaml".
const (
	kindIPAddressPool    = "ipaddresspool"
	kindL2Advertisement  = "l2advertisement"
	kindBGPAdvertisement = "bgpadvertisement"
	kindBGPPeer          = "bgppeer"
	kindService          = "service"
	kindEndpointSlice    = "endpointslice"
	kindEndpoints        = "endpoints"
	kindCertificate      = "certificate"
)

// portName is what the port is called, in the Service and in what is behind it: a
// Service forwards to a port of the same name only.
const portName = "api"

// Params is what is known of an address for the API.
type Params struct {
	// Domain is that of the cluster.
	Domain string
	// Name is that of the Service; Pool that of the IPAddressPool and of what
	// advertises it.
	Name, Pool string
	// Namespace is the Service's, SystemNamespace MetalLB's.
	Namespace, SystemNamespace string
	// Addresses are one, or one of each family in the order of the Service's.
	Addresses []netip.Addr
	// AnnotationPrefix is metallb.io, or metallb.universe.tf before MetalLB 0.14.9.
	AnnotationPrefix string
	// Reserve keeps the pool for Services in Namespace (MetalLB 0.13.9).
	Reserve bool
	// NodeLabels are those of the nodes that announce; all nodes if empty.
	NodeLabels map[string]string
	// Interfaces are those that answer for the addresses; all if empty.
	Interfaces []string
	// ASN is the cluster's own in BGP.
	ASN            uint32
	Peers          []Peer
	PasswordSecret string
	// Port is what clients connect to, TargetPort where API servers listen.
	Port, TargetPort int
	// Selector finds the pods of the API servers; without it, Nodes has them.
	Selector map[string]string
	Nodes    []Node
	// Hostnames are names of the API that are in no certificate of the cluster's
	// own; Secret is the one that has their certificate.
	Hostnames []string
	Secret    string
}

// Peer is a BGP router.
type Peer struct {
	Name    string
	Address netip.AddrPort
	ASN     uint32
	// MultiHop says that it is in no network of the nodes.
	MultiHop bool
}

// Node is a control-plane node. The name is empty where it is not known.
type Node struct {
	Name      string
	Addresses []netip.Addr
}

// Endpoint is an address of a node.
type Endpoint struct {
	Name    string
	Address netip.Addr
}

// Endpoints are the nodes' addresses: of one family ("IPv4", "IPv6"), or of those
// that the Service has if it is empty.
func (p Params) Endpoints(only string) (out []Endpoint) {
	for _, n := range p.Nodes {
		for _, family := range p.Families() {
			for _, a := range n.Addresses {
				if Family(a) == family && (only == "" || only == family) {
					out = append(out, Endpoint{n.Name, a})
					break // one each: a second one would be the same server twice
				}
			}
		}
	}
	return out
}

// Families are those of the addresses, in their order.
func (p Params) Families() (out []string) {
	for _, a := range p.Addresses {
		out = append(out, Family(a))
	}
	return out
}

// FamilyPolicy is that of the Service.
func (p Params) FamilyPolicy() string {
	if len(p.Addresses) > 1 {
		return "RequireDualStack"
	}
	return "SingleStack"
}

// Text writes a name as YAML does, in quotes where it would be another thing without
// ("no", "1e3").
func (Params) Text(s string) (string, error) {
	data, err := yaml.Marshal(s)
	return strings.TrimSpace(string(data)), err
}

// PortName is the constant, for templates.
func (Params) PortName() string { return portName }

// OwnName is the name of the API that the cluster's own certificate has.
func (p Params) OwnName() string { return "api." + p.Domain }

// ReplacesOwn says whether the certificate for Hostnames takes the place of the
// cluster's own.
func (p Params) ReplacesOwn() bool { return slices.Contains(p.Hostnames, p.OwnName()) }

// ClientNames are those that clients may use.
func (p Params) ClientNames() []string {
	if p.ReplacesOwn() {
		return p.Hostnames
	}
	return append([]string{p.OwnName()}, p.Hostnames...)
}

// Servers are the addresses as a kubeconfig has them.
func (p Params) Servers() (out []string) {
	for _, a := range p.Addresses {
		out = append(out, "https://"+netip.AddrPortFrom(a, uint16(p.Port)).String())
	}
	return out
}

// Family is IPv4 or IPv6, as the Kubernetes API writes it.
func Family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// Object is one object, and a good name for its file.
type Object struct {
	File string
	Data []byte
}

// Objects makes those that belong to a cluster, in the order in which they are
// applied. own says that the pool and what advertises it are made, too, by BGP if
// bgp says so; endpoints asks for Endpoints in place of an EndpointSlice.
func (p Params) Objects(own, bgp, endpoints bool) ([]Object, error) {
	m := maker{}
	switch {
	case !own:
	case bgp:
		m.add(kindIPAddressPool, kindIPAddressPool, p)
		for i, peer := range p.Peers {
			m.add(kindBGPPeer, kindBGPPeer+"-"+strconv.Itoa(i+1), struct {
				Params
				Peer Peer
			}{p, peer})
		}
		m.add(kindBGPAdvertisement, kindBGPAdvertisement, p)
	default:
		m.add(kindIPAddressPool, kindIPAddressPool, p)
		m.add(kindL2Advertisement, kindL2Advertisement, p)
	}
	m.add(kindService, kindService, p)
	switch {
	case len(p.Selector) > 0:
	case endpoints:
		m.add(kindEndpoints, kindEndpoints, behind{p, "", p.Endpoints("")})
	default:
		for _, family := range p.Families() {
			m.add(kindEndpointSlice, kindEndpointSlice+"-"+strings.ToLower(family), behind{p, family, p.Endpoints(family)})
		}
	}
	return m.objects, m.err
}

// Certificate says what clients need, in comments, and gives the API server a
// certificate for names that it has none for yet.
func (p Params) Certificate() ([]byte, error) {
	m := maker{}
	m.add(kindCertificate, kindCertificate, p)
	if m.err != nil {
		return nil, m.err
	}
	text := m.objects[0].Data
	if len(p.Hostnames) == 0 {
		return text, nil
	}
	object, err := manifest.APIServer(manifest.Certificate(p.Secret, p.Hostnames))
	return slices.Concat(text, object), err
}

// behind is what stands behind a Service.
type behind struct {
	Params
	Family    string
	Endpoints []Endpoint
}

// maker executes templates until the first error.
type maker struct {
	objects []Object
	err     error
}

func (m *maker) add(template, name string, data any) {
	if m.err != nil {
		return
	}
	text, err := parsed.Run(template+".yaml", data)
	if err != nil {
		m.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	m.objects = append(m.objects, Object{name + ".yaml", text})
}
