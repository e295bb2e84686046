package verify

import (
	_ "embed"
	"fmt"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// OpenShiftsGone bounds the time in which OpenShift's bootstrap stops keepalived after its API
// server and its provisioning service have ended: it polls every second, and more than five
// successive polls must have found neither (baremetal-runtimecfg, pkg/monitor:
// bootstrapApiFailuresThreshold).
const OpenShiftsGone = 7 * time.Second

//go:embed openshift.conf.tmpl
var openShiftsTemplate string

// openShiftsBootstrap returns the configuration of OpenShift's own keepalived on the bootstrap
// host for a group, the same from 4.12 to 5.2: the first API VIPs alone, VRRPv2 (VRRPv3 for
// IPv6), an advert a second, no check that changes the priority. It sends to one address of
// each node with the label node-role.kubernetes.io/master only (machine-config-operator,
// manifests/on-prem/keepalived.conf.tmpl; baremetal-runtimecfg, pkg/config: getSortedBackends);
// by multicast as long as there is none. openShiftsBootstrapKind models when it runs.
func openShiftsBootstrap(cluster string, g *v1alpha1.Group, n *v1alpha1.Node) ([]byte, error) {
	conf := keepalived.Conf{Node: n.Name}
	for i, vip := range g.VIPs {
		bind, ok := n.BindAsListed(vip)
		if !ok || g.Name != v1alpha1.FirstAPI {
			continue
		}
		inst := keepalived.Instance{
			Name: fmt.Sprintf("%s_%d", g.Instance, i), Interface: bind.Interface, RouterID: g.VirtualRouterID,
			Priority: vrrp.BootstrapPriority, AdvertInterval: "1", Password: cluster + "_api_vip",
			VIP: netip.PrefixFrom(vip, vip.BitLen()), Source: bind.Source.Addr(),
		}
		for _, p := range n.Peers {
			if a, ok := p.AddressFor(bind); ok && p.Role == v1alpha1.RoleMaster {
				inst.Peers = append(inst.Peers, a)
			}
		}
		conf.Instances = append(conf.Instances, inst)
	}
	return templates.Execute("openshift.conf.tmpl", openShiftsTemplate, conf)
}
