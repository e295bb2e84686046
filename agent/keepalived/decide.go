package keepalived

import (
	"net/netip"

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
