package bgp_test

import "strings"

// frrCore is the configuration of the router in front of the racks.
const frrCore = `frr defaults datacenter
router bgp 64700
 bgp router-id 10.255.1.0
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 neighbor racks peer-group
 neighbor racks remote-as external
 neighbor racks bfd profile fast
 neighbor racks timers connect 1
 neighbor 10.255.1.1 peer-group racks
 neighbor 10.255.2.1 peer-group racks
 neighbor 2001:db8:f1::1 peer-group racks
 neighbor 2001:db8:f2::1 peer-group racks
 address-family ipv4 unicast
  network 203.0.113.0/24
  maximum-paths 8
  no neighbor 2001:db8:f1::1 activate
  no neighbor 2001:db8:f2::1 activate
 exit-address-family
 address-family ipv6 unicast
  network 2001:db8:c::/64
  maximum-paths 8
  neighbor 2001:db8:f1::1 activate
  neighbor 2001:db8:f2::1 activate
 exit-address-family
bfd
 profile fast
  receive-interval 50
  transmit-interval 50
`

// frrRack is the configuration of the first rack's router: it accepts the VIPs alone, and
// announces nothing to the nodes.
const frrRack = `frr defaults datacenter
ip prefix-list vips seq 5 permit 198.51.100.0/24 ge 32
ipv6 prefix-list vips seq 5 permit 2001:db8:100::/64 ge 128
route-map vips permit 10
 match ip address prefix-list vips
route-map vips permit 20
 match ipv6 address prefix-list vips
route-map nothing deny 10
router bgp 64601
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 neighbor vipgen peer-group
 neighbor vipgen remote-as 64512
 neighbor vipgen bfd profile fast
 neighbor vipgen passive
 neighbor 192.0.2.11 peer-group vipgen
 neighbor 192.0.2.12 peer-group vipgen
 neighbor 192.0.2.11 password a-long-word
 neighbor 192.0.2.12 password a-long-word
 neighbor 2001:db8:1::11 peer-group vipgen
 neighbor 2001:db8:1::12 peer-group vipgen
 neighbor 10.255.1.0 remote-as 64700
 neighbor 10.255.1.0 bfd profile fast
 neighbor 10.255.1.0 timers connect 1
 neighbor 2001:db8:f1:: remote-as 64700
 neighbor 2001:db8:f1:: bfd profile fast
 neighbor 2001:db8:f1:: timers connect 1
 address-family ipv4 unicast
  network 192.0.2.0/26
  maximum-paths 8
  neighbor vipgen route-map vips in
  neighbor vipgen route-map nothing out
  no neighbor 2001:db8:1::11 activate
  no neighbor 2001:db8:1::12 activate
  no neighbor 2001:db8:f1:: activate
 exit-address-family
 address-family ipv6 unicast
  network 2001:db8:1::/64
  maximum-paths 8
  neighbor 2001:db8:1::11 activate
  neighbor 2001:db8:1::12 activate
  neighbor 2001:db8:f1:: activate
  neighbor vipgen route-map vips in
  neighbor vipgen route-map nothing out
 exit-address-family
bfd
 profile fast
  receive-interval 50
  transmit-interval 50
`

// birdLinks is the same for sessions by interface.
var birdLinks = birdRack[:strings.Index(birdRack, "protocol bgp nodes ")] + `protocol radv { interface "n3" { max ra interval 10; default lifetime 0; }; }
protocol bgp nodes { local as 64602; neighbor range fe80::/10 as 64512; interface "n3"; ttl security on; dynamic name "n"; passive; bfd on; error wait time 1, 2;
  ipv4 { import where net ~ [198.51.100.0/24{32,32}]; export none; extended next hop on; };
  ipv6 { import where net ~ [2001:db8:100::/64{128,128}]; export none; }; }
`

// birdRack is the configuration of the second rack's router.
const birdRack = `router id 192.0.2.65;
protocol device {}
protocol direct { ipv4; ipv6; }
protocol kernel { ipv4 { export where source = RTS_BGP; }; merge paths on; }
protocol kernel { ipv6 { export where source = RTS_BGP; }; merge paths on; }
protocol bfd { interface "*" { interval 50 ms; multiplier 3; }; }
protocol bgp core { local 10.255.2.1 as 64602; neighbor 10.255.2.0 as 64700; bfd on; connect retry time 1; error wait time 1, 2;
  ipv4 { next hop self; import all; export where source = RTS_BGP || net = 192.0.2.64/26; }; }
protocol bgp core6 { local 2001:db8:f2::1 as 64602; neighbor 2001:db8:f2:: as 64700; bfd on; connect retry time 1; error wait time 1, 2;
  ipv6 { next hop self; import all; export where source = RTS_BGP || net = 2001:db8:2::/64; }; }
protocol bgp nodes { local 192.0.2.65 as 64602; neighbor range 192.0.2.64/26 as 64512; dynamic name "n"; passive; bfd on; error wait time 1, 2;
  ipv4 { import where net ~ [198.51.100.0/24{32,32}]; export none; }; }
protocol bgp nodes6 { local 2001:db8:2::1 as 64602; neighbor range 2001:db8:2::/64 as 64512; dynamic name "m"; passive; bfd on; error wait time 1, 2;
  ipv6 { import where net ~ [2001:db8:100::/64{128,128}]; export none; }; }
`
