package keepalived

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The link has two prefixes, and kubelet's addresses are not in that of the VIP: nodes that
// start beside the operator's keepalived send from kubelet's addresses, and from those of the
// VIP's prefix after the migration, without a split brain at any time. Where the cluster does
// not list these, they keep kubelet's.
func TestHardCase46Move(t *testing.T) {
	testkit.Live(t)
	for name, annotated := range map[string]bool{"annotated": true, "not annotated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusterOf(t, ipv6)
			kubelets := func(n int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("fd99:7::%d/64", n)) }
			for n := 11; n <= 13; n++ {
				x := c.add(fmt.Sprintf("cp-%d", n-10), "master", n)
				x.addAddress(kubelets(n))
				c.list.SetNode(x.name, x.role, kubelets(n).Addr().String())
				if annotated {
					c.list.Patch(daemon.NodesPath+"/"+x.name, daemon.Object{"metadata": daemon.Object{"annotations": daemon.Object{
						"k8s.ovn.org/host-cidrs": fmt.Sprintf("[%q,%q]", x.address, kubelets(n)),
					}}})
				}
				x.Write(keptSettings, []byte(`{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`))
			}
			stop := c.neverTwo()
			for _, name := range c.all() {
				c.nodes[name].start()
			}
			sends := func(profile string, from netip.Prefix) func(state.Keepalived) bool {
				return func(s state.Keepalived) bool {
					return running(s) && s.VRRP != nil && string(s.VRRP.Profile) == profile && len(s.Instances) > 0 &&
						len(s.Instances[0].Peers) >= 2 && from.Contains(s.Instances[0].Source)
				}
			}
			for _, name := range c.all() {
				c.nodes[name].awaitState("it sends from kubelet's address", sends("classic", kubelets(0)))
			}
			first := c.holder(c.all()...)
			c.planSoon("profile: fast\n")
			to := kubelets(0)
			if annotated {
				to = c.host(1)
			}
			for _, name := range c.all() {
				s := c.nodes[name].awaitState("it has moved", sends("fast", to))
				if s.Migrations.Migrated != 1 || s.Migrations.RolledBack != 0 {
					t.Errorf("%s: %+v", name, s.Migrations)
				}
			}
			if now := c.holder(c.all()...); now != first {
				t.Logf("the VIP moved from %s to %s", first, now)
			}
			stop()
		})
	}
}

// addAddress adds an address to the interface with the node's own.
func (n *node) addAddress(p netip.Prefix) {
	n.t.Helper()
	links := n.linksWith(n.address.Addr())
	if len(links) != 1 {
		n.t.Fatalf("%v is on %v", n.address, links)
	}
	err := n.Do(func() error {
		l, err := netlink.LinkByName(links[0])
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, &netlink.Addr{
			IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}, Flags: 0x02, // IFA_F_NODAD
		})
	})
	testkit.Must(n.t, err)
}
