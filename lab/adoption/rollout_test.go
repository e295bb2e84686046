package adoption

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A cluster moves from the operator's keepalived to vipgen, node by node, while a new node
// joins, which the operator's nodes know only 34 s later (hard case 49). No two nodes hold a
// VIP for longer than when the operator's own pre-empt each other.
func TestHardCase49Rollout(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for name, addresses := range map[string][]string{
		"both families": {"192.168.111.%d/24", "2001:db8:1::%d/64"},
		// kubelet's IPv6 address is in another network than the VIP (hard case 46).
		"two prefixes": {"192.168.111.%d/24", "fd99:7::%d/64", "2001:db8:1::%d/64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMixed(t, "dual-stack")
			at := func(n int) (out []netip.Prefix) {
				for _, format := range addresses {
					out = append(out, netip.MustParsePrefix(fmt.Sprintf(format, n)))
				}
				return out
			}
			var nodes []*node
			// The new node has the lowest address: of two nodes with the VIP that do not both receive the
			// other's advertisements, the other nodes keep theirs.
			const last = 10
			for i := range 4 {
				nodes = append(nodes, m.join(fmt.Sprintf("cp-%d", i+1), v1alpha1.RoleMaster, at([]int{11, 12, 13, last}[i])...))
			}
			old, late := nodes[:3], nodes[3]
			for i, n := range old {
				m.list(n, at(11+i)...)
				m.operate(n, "cp-1", "cp-2", "cp-3")
			}
			m.held()
			m.startWatch()
			m.adopt(old[0])
			m.list(late, at(last)...)
			m.adopt(late)
			m.awaitKnown(late)
			m.adopt(old[1])
			m.adopt(old[2])
			m.judge()
		})
	}
}

// Two nodes with fencing are installed by OpenShift's own bootstrap host, which becomes the
// second of them. Its keepalived has the first node and a peer without an address. The VIP has
// a holder at each moment: the bootstrap host, then the first node alone, even if that learns
// only later that the bootstrap host is gone.
func TestHardCase60TwoNodesWithFencing(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for name, etcdFirst := range map[string]bool{"etcd leaves the bootstrap first": true, "the bootstrap goes first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMixed(t, "two-nodes-fencing")
			boot := m.join("bootstrap", v1alpha1.RoleBootstrap, host(10))
			first := m.join("cp-1", v1alpha1.RoleMaster, host(11))
			m.operate(boot)
			m.held()
			m.startWatch()
			m.list(first, host(11))
			m.api.SetBootstrap("192.168.111.10")
			first.start()
			m.awaitPart(first)
			m.awaitHolder("bootstrap")
			// Measured from here: before, the bootstrap's keepalived is restarted with its new
			// peers, and does not hold the VIP for 3.7 s, as beside OpenShift's own nodes.
			both := time.Now()

			leave := func() {
				t.Helper()
				m.leave(boot)
				m.awaitHolder("cp-1")
			}
			if !etcdFirst {
				leave()
			}
			m.api.SetBootstrap("")
			first.awaitGone()
			if etcdFirst {
				m.awaitHolder("bootstrap")
				leave()
			}

			// The host reboots with the same address and another name.
			delete(m.nodes, boot.name)
			boot.name, boot.role = "cp-2", v1alpha1.RoleMaster
			m.nodes["cp-2"], m.at["cp-2"] = boot, m.at["bootstrap"]
			boot.admit(m.api)
			m.list(boot, host(10))
			boot.start()
			m.awaitPart(boot)
			first.awaitState("the second is a peer", func(s state.Keepalived) bool { return len(s.Instances) > 0 && len(s.Instances[0].Peers) == 1 })
			m.awaitHolder("cp-1")
			// A holder that stops sends priority 0, and the first node takes over within the
			// skew time.
			m.neverNone(m.judge(), both, time.Second)
		})
	}
}
