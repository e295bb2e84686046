package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// vrrpConf is a keepalived.conf in the format of the fast profile, whose priority increases by
// the value of its track file.
func vrrpConf(vip string, self int, addrs []netip.Prefix) []byte {
	var peers strings.Builder
	for i, addr := range addrs {
		if i != self {
			fmt.Fprintf(&peers, "        %s min_ttl 255\n", addr.Addr())
		}
	}
	return fmt.Appendf(nil, `global_defs {
    router_id node%d
    vrrp_version 3
}
track_file health {
    file "/run/vipgen/health"
    weight 1
    init_file 0
}
vrrp_instance api {
    state BACKUP
    interface eth0
    virtual_router_id 109
    priority 40
    advert_int 0.1
    unicast_src_ip %s
    unicast_ttl 255
    unicast_peer {
%s    }
    track_file {
        health
    }
    virtual_ipaddress {
        %s
    }
}
`, self, addrs[self].Addr(), peers.String(), vip)
}

func TestElection(t *testing.T) {
	tests := []struct{ name, vip, node string }{
		{"IPv4", "192.0.2.5/32", "192.0.2.1%d/24"},
		{"IPv6", "2001:db8::5/128", "2001:db8::1%d/64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { testElection(t, tt.vip, tt.node) })
	}
}

func testElection(t *testing.T, vip, node string) {
	var addrs []netip.Prefix
	for i := range 3 {
		addrs = append(addrs, netip.MustParsePrefix(fmt.Sprintf(node, i)))
	}
	members := map[string]Member{}
	for i, addr := range addrs {
		config := vrrpConf(vip, i, addrs)
		Keepalived(t, config)
		members[fmt.Sprintf("node%d", i)] = Member{Addresses: []netip.Prefix{addr}, Config: config}
	}
	c := NewCluster(t, netip.MustParsePrefix(vip).Addr(), members)

	first := c.Holder()
	c.Crash(first)
	if second := c.Holder(); second == first {
		t.Fatalf("%s crashed and still holds the VIP", first)
	}
	c.Start(first)
	c.WriteFile(first, "/run/vipgen/health", []byte("20\n"))
	testkit.Await(t, first+" to win by its track file", func() bool { return c.Holder() == first })
	c.Stop(first)
	if now := c.Holder(); now == first {
		t.Errorf("%s was stopped and still holds the VIP", first)
	}
}
