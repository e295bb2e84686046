package metallb

import (
	"embed"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/manifest"
)

//go:embed *.tmpl
var files embed.FS

var parsed = templates.ParseAll(files)

// Names of the templates, and of their files without ".yaml".
const (
	kindIPAddressPool    = "ipaddresspool"
	kindL2Advertisement  = "l2advertisement"
	kindBGPAdvertisement = "bgpadvertisement"
	kindBGPPeer          = "bgppeer"
	kindService          = "service"
	kindEndpointSlice    = "endpointslice"
	kindCertificate      = "certificate"
)

// portName is the name of the port in the Service and its endpoints, which must match.
const portName = "api"

// Params describes an additional address for the API.
type Params struct {
	// Domain is the domain of the cluster.
	Domain string
	// Name is the name of the Service, Pool the name of the IPAddressPool and its
	// advertisement.
	Name, Pool string
	// Namespace is the Service's, SystemNamespace MetalLB's.
	Namespace, SystemNamespace string
	// Addresses holds one address, or one of each family in the order of the Service's.
	Addresses []netip.Addr
	// AnnotationPrefix is metallb.io, or metallb.universe.tf before MetalLB 0.14.9.
	AnnotationPrefix string
	// Reserve keeps the pool for Services in Namespace (MetalLB 0.13.9).
	Reserve bool
	// NodeLabels select the nodes that announce; all nodes if empty.
	NodeLabels map[string]string
	// Interfaces are the announcing interfaces; all if empty.
	Interfaces []string
	// ASN is the cluster's own BGP ASN.
	ASN            uint32
	Peers          []Peer
	PasswordSecret string
	// Port is the clients' port, TargetPort the port of the API servers.
	Port, TargetPort int
	// Selector selects the pods of the API servers; without it, Nodes is used.
	Selector map[string]string
	Nodes    []Node
	// Hostnames are names of the API that the cluster's own certificate lacks; Secret is
	// the Secret with their certificate.
	Hostnames []string
	Secret    string
}

// Peer is a BGP router.
type Peer struct {
	Name    string
	Address netip.AddrPort
	ASN     uint32
	// MultiHop reports that the router is in no network of the nodes.
	MultiHop bool
}

// Node is a control-plane node. The name is empty if unknown.
type Node struct {
	Name      string
	Addresses []netip.Addr
}

// Endpoint is an address of a node.
type Endpoint struct {
	Name    string
	Address netip.Addr
}

// Endpoints returns the nodes' addresses of one family ("IPv4", "IPv6"), or of the
// families of the Service if it is empty.
func (p Params) Endpoints(only string) (out []Endpoint) {
	for _, n := range p.Nodes {
		for _, family := range p.Families() {
			for _, a := range n.Addresses {
				if installconfig.Family(a) == family && (only == "" || only == family) {
					out = append(out, Endpoint{n.Name, a})
					break // one each: a second one would be the same server
				}
			}
		}
	}
	return out
}

// Families returns the families of the addresses, in order.
func (p Params) Families() (out []string) {
	return lists.Map(p.Addresses, installconfig.Family)
}

// FamilyPolicy returns the ipFamilyPolicy of the Service.
func (p Params) FamilyPolicy() string {
	if len(p.Addresses) > 1 {
		return "RequireDualStack"
	}
	return "SingleStack"
}

// Text returns a name as a YAML scalar, quoted if it would have another type otherwise
// ("no", "1e3").
func (Params) Text(s string) (string, error) {
	data, err := yaml.Marshal(s)
	return strings.TrimSpace(string(data)), err
}

// PortName returns portName, for templates.
func (Params) PortName() string { return portName }

// OwnName returns the name of the API in the cluster's own certificate.
func (p Params) OwnName() string { return "api." + p.Domain }

// ReplacesOwn reports whether the certificate for Hostnames replaces the cluster's own.
func (p Params) ReplacesOwn() bool { return slices.Contains(p.Hostnames, p.OwnName()) }

// ClientNames returns the names for clients.
func (p Params) ClientNames() []string {
	if p.ReplacesOwn() {
		return p.Hostnames
	}
	return append([]string{p.OwnName()}, p.Hostnames...)
}

// Servers returns the addresses as kubeconfig servers.
func (p Params) Servers() (out []string) {
	return lists.Map(p.Addresses, func(a netip.Addr) string { return "https://" + netip.AddrPortFrom(a, uint16(p.Port)).String() })
}

// Object is a manifest with a name for its file.
type Object struct {
	File string
	Data []byte
}

// Objects returns the objects of the cluster, in the order in which they are applied.
func (plan *Plan) Objects() ([]Object, error) {
	p, m := plan.params, maker{}
	switch {
	case !plan.own:
	case plan.bgp:
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
	if len(p.Selector) == 0 {
		for _, family := range p.Families() {
			m.add(kindEndpointSlice, kindEndpointSlice+"-"+strings.ToLower(family), endpointsData{p, family, p.Endpoints(family)})
		}
	}
	return m.objects, m.err
}

// Certificate describes what clients need, in comments, with the APIServer object for names
// that are in no certificate yet.
func (plan *Plan) Certificate() ([]byte, error) {
	p, m := plan.params, maker{}
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

type endpointsData struct {
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
