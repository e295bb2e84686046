package lab

import (
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/render"
)

// racksInstall is the demo's install-config with a subnet for each rack, and VIPs in none.
var racksInstall = strings.NewReplacer("192.0.2.0/24", "192.0.2.0/26", "2001:db8::/64", "192.0.2.64/26",
	`192.0.2.5, "2001:db8::5"`, "198.51.100.5", `192.0.2.6, "2001:db8::6"`, "198.51.100.6").Replace(demo)

// racksConfig has the routers of the racks, and a hostile one.
const racksConfig = `apiVersion: vipgen.io/v1alpha1
kind: VIPConfig
spec:
  announce: bgp
  bgp:
    localASN: 64512
    peers:
    - {address: 192.0.2.1, asn: 64601, nodes: {subnets: [192.0.2.0/26]}}
    - {address: 192.0.2.65, asn: 64602, nodes: {subnets: [192.0.2.64/26]}}
    - {address: 192.0.2.62, asn: 64666, bfd: {enabled: false}, nodes: {subnets: [192.0.2.0/26]}}
`

// rack is a subnet of nodes with its router.
type rack struct {
	name     string
	network  netip.Prefix
	router   netip.Prefix
	up, core netip.Prefix // of the link to the core: the router's end, and the core's
}

var (
	racks = []rack{
		{"rack-a", netip.MustParsePrefix("192.0.2.0/26"), netip.MustParsePrefix("192.0.2.1/26"), netip.MustParsePrefix("10.255.1.1/31"), netip.MustParsePrefix("10.255.1.0/31")},
		{"rack-b", netip.MustParsePrefix("192.0.2.64/26"), netip.MustParsePrefix("192.0.2.65/26"), netip.MustParsePrefix("10.255.2.1/31"), netip.MustParsePrefix("10.255.2.0/31")},
	}
	hostilePeer = netip.MustParsePrefix("192.0.2.62/26")
	coreClients = netip.MustParsePrefix("203.0.113.1/24")
	rackClient  = netip.MustParsePrefix("203.0.113.10/24")
)

// Racks returns the demo's cluster with VIPs that routers know by BGP ([PlanFor],
// [Cluster.AddRouters]).
func Racks() (*render.Cluster, error) {
	c, problems, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: "racks", Data: []byte(racksInstall)},
		VIPConfig:     &render.File{Name: "racks/vipgen.yaml", Data: []byte(racksConfig)},
	}, render.Options{})
	if err != nil {
		return nil, err
	}
	return c, problems.Err()
}

// PlanFor returns the machines for a lab of a cluster. Those of Racks are nodes in two racks with a subnet
// each, in turn, and a client behind their routers; for others see [NewPlan].
func PlanFor(c *render.Cluster, o PlanOptions) (*Plan, error) {
	p, err := NewPlan(c, o)
	if err != nil || !c.Config.Spec.Routed() {
		return p, err
	}
	for i := range p.Nodes {
		r := &racks[RackOf(i)]
		a := r.network.Addr()
		for range firstHost + i {
			a = a.Next()
		}
		p.Nodes[i].Addresses, p.Nodes[i].Gateway = []netip.Prefix{netip.PrefixFrom(a, r.network.Bits())}, r.router.Addr()
	}
	p.Client.Addresses, p.Client.Gateway = []netip.Prefix{rackClient}, coreClients.Addr()
	p.Site.Gateway = racks[0].router.Addr()
	return p, p.distinct()
}

// RackOf returns the number of the rack of a node, by its place in the plan.
func RackOf(node int) int { return node % len(racks) }
