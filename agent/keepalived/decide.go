package keepalived

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// decision is the configuration that keepalived is to have. Priorities are decided elsewhere:
// vrrp.PriorityTerms has the terms, agent/health their values.
type decision struct {
	cluster *v1alpha1.ClusterConfig
	node    *v1alpha1.Node
	conf    *keepalived.Conf
	// self is the node as its peers see it.
	self v1alpha1.Peer

	migrations state.Migrations
	migration  *state.Migration
}

func (d *decision) takesPart() bool { return len(d.conf.Instances) > 0 }

// vips returns the VIPs that must be on no interface while keepalived does not run; none
// where nodes do not hold VIPs.
func (d *decision) vips() []netip.Addr {
	if !d.cluster.Spec.ByVRRP() {
		return nil
	}
	return nodeip.VIPs(&d.cluster.Spec)
}

// keepLastPeers adds the last peers of a node that takes part to a list that has no other control-plane
// node any more, because all were deleted or lost their role. Otherwise it would release VIPs that no other
// node can hold; and peers that are there nevertheless still receive its adverts. A node that starts
// takes no part without peers (hard case 2).
func keepLastPeers(n *v1alpha1.Node, last []v1alpha1.Peer) {
	master := func(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleMaster && p.Name != n.Name }
	if n.Role != v1alpha1.RoleMaster || slices.ContainsFunc(n.Peers, master) {
		return
	}
	kept := lists.Filter(last, master)
	listed := func(p v1alpha1.Peer) bool {
		return slices.ContainsFunc(kept, func(k v1alpha1.Peer) bool { return k.Name == p.Name })
	}
	n.Peers = append(slices.DeleteFunc(slices.Clone(n.Peers), listed), kept...)
}

func vipsOf(conf *keepalived.Conf) (out []netip.Addr) {
	return lists.Map(conf.Instances, func(i keepalived.Instance) netip.Addr { return i.VIP.Addr() })
}

func decide(f *facts.Facts, c chosenSettings, lifetimeOver bool) *decision {
	d := &decision{cluster: f.Cluster, node: f.Node, conf: c.conf, self: f.Self, migrations: c.migrations, migration: c.migration}
	if d.conf == nil {
		d.conf = keepalived.New(f.Cluster, f.Node)
		if d.takesPart() {
			d.conf.LeaveOutAll(vrrp.LeftOutLearning)
		}
	}
	switch {
	case f.RemoteWorker && f.Node.Role != v1alpha1.RoleBootstrap:
		d.conf.LeaveOutAll(vrrp.LeftOutRemoteWorker)
	case lifetimeOver:
		d.conf.LeaveOutAll(vrrp.LeftOutBootstrapGone)
	}
	return d
}
