package keepalived

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// decision is what the node is to run.
type decision struct {
	cluster *v1alpha1.ClusterConfig
	node    *v1alpha1.Node
	conf    *keepalived.Conf
	// self is the node as the others see it.
	self v1alpha1.Peer
}

// takesPart says whether keepalived is to run at all.
func (d *decision) takesPart() bool { return len(d.conf.Instances) > 0 }

// vips are those that must be on no interface while keepalived does not run. Those
// that the nodes do not hold are nobody's business here.
func (d *decision) vips() []netip.Addr {
	if d.cluster.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		return nil
	}
	return nodeip.VIPs(&d.cluster.Spec)
}

// disable leaves all of it out.
func (d *decision) disable(why string) {
	d.conf.Instances, d.conf.SyncGroups, d.conf.TrackFiles = nil, nil, nil
	d.conf.Idle = []string{why}
}

// without leaves instances out, and those that move together with them.
func (d *decision) without(names []string, why string) {
	if len(names) == 0 {
		return
	}
	for _, g := range d.conf.SyncGroups {
		if slices.ContainsFunc(g.Members, func(m string) bool { return slices.Contains(names, m) }) {
			names = append(names, g.Members...)
		}
	}
	left := func(i keepalived.Instance) bool { return slices.Contains(names, i.Name) }
	if !slices.ContainsFunc(d.conf.Instances, func(i keepalived.Instance) bool { return !left(i) }) {
		d.disable(why)
		return
	}
	for _, i := range d.conf.Instances {
		if left(i) {
			d.conf.Idle = append(d.conf.Idle, i.Name+": "+why)
		}
	}
	d.conf.Instances = slices.DeleteFunc(d.conf.Instances, left)
	d.conf.SyncGroups = slices.DeleteFunc(d.conf.SyncGroups, func(g keepalived.SyncGroup) bool { return slices.Contains(names, g.Members[0]) })
	d.conf.TrackFiles = slices.DeleteFunc(d.conf.TrackFiles, func(f keepalived.TrackFile) bool {
		return !slices.ContainsFunc(d.conf.Instances, func(i keepalived.Instance) bool {
			return slices.ContainsFunc(termsOf(d.conf, i), func(t vrrp.Term) bool { return t.Name == f.Name })
		})
	})
}

// decide puts together what is known. conf is for the VRRP settings in force; nil while
// these are not known.
func decide(f *facts.Facts, conf *keepalived.Conf, lifetimeOver bool) *decision {
	d := &decision{cluster: f.Cluster, node: f.Node, conf: conf, self: f.Self}
	if conf == nil {
		d.conf = keepalived.New(f.Cluster, f.Node)
		if d.takesPart() {
			d.disable("this node is finding out which VRRP settings the others have")
		}
	}
	switch {
	case f.RemoteWorker && f.Node.Role != v1alpha1.RoleBootstrap:
		d.disable(vrrp.IdleRemoteWorker)
	case lifetimeOver:
		d.disable(vrrp.IdleBootstrapGone)
	}
	return d
}
