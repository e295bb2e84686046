package installconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/source"
)

// mapBGP is the text config.json of the ConfigMap bgp-vip-config in openshift-network-operator:
// BGPVIPConfigMap.Generate of pkg/asset/manifests/bgpvipconfig.go in openshift/installer writes it,
// renderBGPVIPFRRConfiguration of openshift/cluster-network-operator reads it.
type mapBGP struct {
	LocalASN      uint32               `json:"localASN"`
	DefaultPeers  []mapPeer            `json:"defaultPeers"`
	Communities   []string             `json:"communities"`
	APIVIPs       []netip.Addr         `json:"apiVIPs"`
	IngressVIPs   []netip.Addr         `json:"ingressVIPs"`
	HostOverrides map[string][]mapPeer `json:"hostOverrides"`
}

// mapPeer is a router, as frrPeerJSON of openshift/installer: times are bare seconds, of which
// the cluster network operator also takes durations.
type mapPeer struct {
	PeerAddress   netip.Addr `json:"peerAddress"`
	PeerASN       uint32     `json:"peerASN"`
	Password      present    `json:"password"`
	Port          uint16     `json:"port"`
	BFDEnabled    string     `json:"bfdEnabled"`
	EBGPMultiHop  string     `json:"ebgpMultiHop"`
	HoldTime      string     `json:"holdTime"`
	KeepaliveTime string     `json:"keepaliveTime"`
}

// ReadBGPVIPConfig returns the routers of the text config.json of the ConfigMap bgp-vip-config. Hosts
// with routers of their own, by their short names, have sessions with these alone: the others of
// nodes have the default ones.
func ReadBGPVIPConfig(doc *source.Document, nodes []string) (*BGP, problem.List) {
	var in mapBGP
	r := newReader(doc, doc.DecodeStrict(&in))
	out := &BGP{BGP: v1alpha1.BGP{LocalASN: in.LocalASN, Communities: in.Communities}}
	if in.LocalASN == 0 {
		r.missing("localASN", "the AS number of the nodes", "")
	}
	var others v1alpha1.BGPNodes
	if len(in.HostOverrides) > 0 {
		others.Names = lists.Filter(nodes, func(node string) bool {
			host, _, _ := strings.Cut(node, ".")
			return len(in.HostOverrides[host]) == 0
		})
	}
	for _, host := range slices.Sorted(maps.Keys(in.HostOverrides)) {
		own := lists.Filter(nodes, func(node string) bool { return node == host || strings.HasPrefix(node, host+".") })
		if len(own) == 0 {
			r.add(problem.MissingField, "hostOverrides", "routers of "+problem.Quote(host)+", and no such node", "the Nodes of the cluster", "")
		}
		r.mapPeers(out, "hostOverrides."+host, in.HostOverrides[host], v1alpha1.BGPNodes{Names: own})
	}
	if len(in.HostOverrides) == 0 || len(others.Names) > 0 {
		r.mapPeers(out, "defaultPeers", in.DefaultPeers, others)
	}
	if len(out.Peers) == 0 {
		r.missing("defaultPeers", "the routers of the nodes", "")
	}
	return out, r.report()
}

func (r *reader) mapPeers(out *BGP, at string, list []mapPeer, nodes v1alpha1.BGPNodes) {
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		hold, err := time.ParseDuration(p.HoldTime)
		if seconds, bare := time.ParseDuration(p.HoldTime + "s"); bare == nil {
			hold, err = seconds, nil
		}
		if p.HoldTime != "" && err != nil {
			r.add(problem.BadValue, at+".holdTime", problem.Quote(p.HoldTime), "seconds", "")
		}
		r.bgpPeer(out, at, &fileBGPPeer{PeerAddress: p.PeerAddress, PeerASN: p.PeerASN, Port: p.Port, Password: p.Password, HoldTime: v1alpha1.Duration(hold),
			BFDEnabled: r.chosen(at+".bfdEnabled", p.BFDEnabled, "true", "false"), EBGPMultiHop: r.chosen(at+".ebgpMultiHop", p.EBGPMultiHop, "true", "false")}, nodes)
	}
}
