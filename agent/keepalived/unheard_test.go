package keepalived

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// A node that nobody sends adverts to does not take a VIP that somebody answers
// for.
func TestUnheard(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const conf = `vrrp_instance V { interface %s
  version %d
  virtual_router_id %d
  priority 100
  advert_int %s
  unicast_src_ip %v
  unicast_peer { %v }
  virtual_ipaddress { %v/%d }
}
`
	for _, tt := range []struct {
		name             string
		holder, node     string // addresses
		other, vip       string // another peer of the holder; the VIP
		version, routerd int
		interval         string
	}{
		{"IPv4", "192.0.2.10/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5", 3, 7, "0.04"},
		{"IPv6", "2001:db8::10/64", "2001:db8::11/64", "2001:db8::12", "2001:db8::5", 3, 8, "0.04"},
		{"VRRPv2", "192.0.2.10/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5", 2, 9, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := daemon.NewNetwork(t)
			at := func(name, prefix string) (*daemon.Host, netip.Addr) {
				return daemon.NewHost(t, daemon.AddNode(t, n, name, prefix)), netip.MustParsePrefix(prefix).Addr()
			}
			holder, from := at("holder", tt.holder)
			node, source := at("node", tt.node)
			vip := netip.MustParseAddr(tt.vip)
			ask := func() []netip.Addr {
				t.Helper()
				var found []netip.Addr
				err := node.Do(func() (err error) {
					found, _, err = unheard([]keepalived.Instance{{
						Name: "V", Interface: node.Link, RouterID: tt.routerd, AdvertInterval: tt.interval,
						Source: source, Peers: []netip.Addr{from}, VIP: netip.PrefixFrom(vip, vip.BitLen()),
					}})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			run := func(peer string) (stop func()) {
				t.Helper()
				holder.Write("/etc/keepalived/keepalived.conf", fmt.Appendf(nil, conf, holder.Link, tt.version, tt.routerd,
					tt.interval, from, peer, vip, vip.BitLen()))
				p := holder.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog")
				testkit.Await(t, "the holder", func() bool {
					held := false
					err := holder.Do(func() error {
						list, err := addresses()
						for _, a := range list {
							held = held || ipOf(a) == vip && a.Flags&unix.IFA_F_TENTATIVE == 0
						}
						return err
					})
					return err == nil && held
				})
				return func() { p.Stop() }
			}

			if found := ask(); len(found) > 0 {
				t.Errorf("nobody holds the VIP, and %v is held by somebody who does not know the node", found)
			}
			stop := run(tt.other)
			if found := ask(); len(found) != 1 || found[0] != vip {
				t.Errorf("the holder's peer is another: %v", found)
			}
			stop()
			run(source.String())
			if found := ask(); len(found) > 0 {
				t.Errorf("the holder knows the node: %v", found)
			}
		})
	}
}
