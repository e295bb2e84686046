package keepalived

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// terms is keepalived.Terms, whose package has this one's name.
var terms = keepalived.Terms

// decision is what the node is to run.
type decision struct {
	cluster *v1alpha1.ClusterConfig
	node    *v1alpha1.Node
	conf    *keepalived.Conf
}

// takesPart says whether keepalived is to run at all.
func (d *decision) takesPart() bool { return len(d.conf.Instances) > 0 }

// vips are those that must be on no interface while keepalived does not run. An
// external load balancer's are nobody's business here.
func (d *decision) vips() []netip.Addr {
	if d.cluster.Spec.LoadBalancer == v1alpha1.LoadBalancerExternal {
		return nil
	}
	return nodeip.VIPs(&d.cluster.Spec)
}

// sit leaves all of it out.
func (d *decision) sit(why string) {
	d.conf.Instances, d.conf.SyncGroups, d.conf.TrackFiles = nil, nil, nil
	d.conf.Idle = []string{why}
}

// errNoRole is for a pod that was not rendered by vipgen.
var errNoRole = errors.New("a node has a name and a role")

// decide puts together what is known.
func decide(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, choice nodeip.Choice, tenureOver bool) (*decision, error) {
	if n.Name == "" || n.Role == "" {
		return nil, errNoRole
	}
	n.Interfaces = choice.Interfaces
	n.Peers = merge(n.Name, n.Peers, c.Spec.Peers)
	if err := n.Validate().Err(); err != nil {
		return nil, err
	}
	d := &decision{cluster: c, node: n, conf: keepalived.New(c, n)}
	switch {
	case choice.RemoteWorker && n.Role != v1alpha1.RoleBootstrap:
		d.sit("this node is in no network with a VIP") // hard case 9
	case tenureOver:
		d.sit("the API server of this bootstrap host has gone") // hard case 8
	}
	return d, nil
}

// merge adds the nodes that were known beforehand to those that the cluster
// lists. One that the cluster lists under another name, with the same address, is
// there already. The host that bootstraps is a peer beside the node that it
// becomes.
func merge(self string, listed, known []v1alpha1.Peer) []v1alpha1.Peer {
	out := slices.Clone(listed)
	for _, k := range known {
		there := func(p v1alpha1.Peer) bool { return p.Name == k.Name || sameHost(p, k) }
		if k.Name != self && !slices.ContainsFunc(listed, there) {
			out = append(out, k)
		}
	}
	return out
}

func sameHost(a, b v1alpha1.Peer) bool {
	if (a.Role == v1alpha1.RoleBootstrap) != (b.Role == v1alpha1.RoleBootstrap) {
		return false
	}
	return slices.ContainsFunc(a.Addresses, func(x netip.Addr) bool { return slices.Contains(b.Addresses, x) })
}
