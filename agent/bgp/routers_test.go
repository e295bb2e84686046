package bgp_test

import (
	_ "embed"
	"strings"
)

// frrCore is the configuration of the router in front of the racks.
//
//go:embed testdata/frr-core.conf
var frrCore string

// frrRack is the configuration of the first rack's router: it accepts the VIPs alone, and
// announces nothing to the nodes.
//
//go:embed testdata/frr-rack.conf
var frrRack string

// birdLinks is the same for sessions by interface.
var birdLinks = birdRack[:strings.Index(birdRack, "protocol bgp nodes ")] + `protocol radv { interface "n3" { max ra interval 10; default lifetime 0; }; }
protocol bgp nodes { local as 64602; neighbor range fe80::/10 as 64512; interface "n3"; ttl security on; dynamic name "n"; passive; bfd on; error wait time 1, 2;
  ipv4 { import where net ~ [198.51.100.0/24{32,32}]; export none; extended next hop on; };
  ipv6 { import where net ~ [2001:db8:100::/64{128,128}]; export none; }; }
`

// birdRack is the configuration of the second rack's router.
//
//go:embed testdata/bird-rack.conf
var birdRack string
