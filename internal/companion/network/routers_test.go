package network

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
)

const install = `apiVersion: v1
baseDomain: example.com
metadata: {name: racks}
networking: {machineNetwork: [{cidr: 192.0.2.0/26}, {cidr: "2001:db8:1::/64"}]}
controlPlane: {replicas: 3}
platform: {none: {}}
`

const vips = `apiVersion: vipgen.io/v1alpha1
kind: VIPConfig
spec:
  apiVIPs: [198.51.100.5, "2001:db8:100::5"]
  ingressVIPs: [198.51.100.6, "2001:db8:100::6"]
`

func TestConf(t *testing.T) {
	c := clusters.Load(t, install, vips+`  announce: bgp
  bgp:
    localASN: 64512
    peers:
    - {address: 192.0.2.1, asn: 64601, passwordFile: /etc/vipgen/bgp/word, ttlSecurity: true}
    - {address: "2001:db8:1::1", asn: 64512, bfd: {enabled: false}}
    - {address: "2001:db8:1::2", asn: 64601, extendedNextHop: true}
    - {interface: ens3, asn: 64601}
`)
	list, err := Routers(c, "")
	testkit.Must(t, err)
	testkit.Equal(t, 4, len(list))
	for _, tt := range []struct {
		router   int
		kind     string
		has, not []string
	}{
		{0, "frr", []string{"ip prefix-list vipgen permit 198.51.100.6/32", "router bgp 64601", "remote-as 64512", "receive-interval 50", "ttl-security hops 1",
			"! neighbor vipgen password PASSWORD", "! neighbor ADDRESS peer-group", "maximum-paths 16"}, []string{"2001:db8", "ebgp-multihop"}},
		{0, "bird", []string{"neighbor range 192.0.2.0/26 as 64512", "net ~ [198.51.100.5/32, 198.51.100.6/32]", "interval 50 ms", "ttl security on"}, []string{"2001:db8"}},
		{1, "frr", []string{"ipv6 prefix-list vipgen permit 2001:db8:100::5/128", "neighbor vipgen activate", "maximum-paths ibgp 16"}, []string{"198.51.100", "bfd", "password"}},
		{1, "bird", []string{"neighbor range 2001:db8:1::/64 as 64512", "ipv6 { export all; }"}, []string{"bfd on", "password", "extended"}},
		{2, "frr", []string{"capability extended-nexthop", "ip prefix-list vipgen permit 198.51.100.5/32", "address-family ipv4 unicast", "address-family ipv6 unicast"}, nil},
		{2, "bird", []string{"ipv4 { export all; }", "net ~ [198.51.100.5/32, 198.51.100.6/32]", "extended next hop on", "ipv6 { export all; }"}, nil},
		{3, "frr", []string{"Router at ens3 of the nodes, AS 64601", "neighbor PORT interface peer-group vipgen", "address-family ipv4 unicast", "address-family ipv6 unicast"}, []string{"ADDRESS"}},
		{3, "bird", []string{"local as 64601", "neighbor range fe80::/10 as 64512", "max ra interval 10; default lifetime 0", "extended next hop on", "2001:db8:100::5/128"}, []string{"192.0.2", "2001:db8:1:"}},
	} {
		text, err := list[tt.router].Conf(tt.kind)
		testkit.Must(t, err)
		testkit.Contains(t, string(text), tt.has...)
		testkit.Lacks(t, string(text), tt.not...)
	}
	_, err = Routers(c, "192.0.2.9")
	testkit.Fails(t, err, "no router 192.0.2.9")
	_, err = Routers(clusters.Load(t, install, vips), "")
	testkit.Fails(t, err, "no BGP sessions")
}
