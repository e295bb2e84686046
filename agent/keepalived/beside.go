package keepalived

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// operatorsTime is how long OpenShift's own keepalived takes, at most, to make a node a
	// peer, from the last change of the list of nodes on. Its monitor (baremetal-runtimecfg,
	// KeepalivedWatch) applies what three looks, 10 s apart, have found alike: after 20 to
	// 30 s. Its list of nodes may be 5 s old (NodeWatcher), each look takes a moment, and
	// so does the reload.
	operatorsTime = 45 * time.Second
	// operatorsMost bounds that where the list goes on changing.
	operatorsMost = 3 * time.Minute
)

// beside holds what a joining node knows of peers that run OpenShift's own keepalived (hard
// case 49). Only one whose adverts come here is sure to know this node.
type beside struct {
	operators []v1alpha1.Peer
	nodes     string       // all of the cluster, as they were listed last
	changed   time.Time    // they are listed so since then
	heard     []netip.Addr // adverts came from there
}

// follow takes in which peers run OpenShift's own keepalived, and which nodes there are.
func (b *beside) follow(now time.Time, operators, all []v1alpha1.Peer) {
	var list []string
	for _, n := range all {
		list = append(list, fmt.Sprint(n.Name, n.Role, n.Addresses))
	}
	if nodes := strings.Join(list, " "); nodes != b.nodes || b.changed.IsZero() {
		b.nodes, b.changed = nodes, now
	}
	b.operators = operators
}

// unheard returns the names of those whose adverts have not come here.
func (b *beside) unheard() (names []string) {
	for _, p := range b.operators {
		if !slices.ContainsFunc(b.heard, addressOf(p)) {
			names = append(names, p.Name)
		}
	}
	return names
}

// left returns for how much longer they may not know a node that joins since then; 0 where
// there are none.
func (b *beside) left(now, since time.Time) time.Duration {
	if len(b.operators) == 0 {
		return 0
	}
	from := since
	if b.changed.After(since) {
		from = b.changed
	}
	return max(min(from.Add(operatorsTime).Sub(now), since.Add(operatorsMost).Sub(now)), 0)
}

// operators are the peers of a node, in the settings of OpenShift's own keepalived, on which
// no agent has announced its own: that keepalived may run there, as on the bootstrap host.
func (j *Job) operators(d *decision) []v1alpha1.Peer {
	if !d.cluster.Spec.VRRP.LikeOpenShift() || d.node.VRRP == nil || !d.node.VRRP.LikeOperator() || j.Source.Nodes == nil {
		return nil
	}
	updates := j.Source.Nodes.Current().Updates
	return slices.DeleteFunc(slices.Clone(d.node.Peers), func(p v1alpha1.Peer) bool {
		gone := p.Role == v1alpha1.RoleBootstrap && d.node.BootstrapGone
		announced := slices.ContainsFunc(updates, func(u nodes.NodeUpdate) bool { return u.Name == p.Name && u.VRRP != "" })
		return gone || announced || !slices.ContainsFunc(d.conf.Instances, func(i keepalived.Instance) bool { return slices.ContainsFunc(i.Peers, addressOf(p)) })
	})
}

// addressOf returns a function that reports whether an address is one of the peer's.
func addressOf(p v1alpha1.Peer) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return slices.Contains(p.Addresses, a) || slices.Contains(p.Elsewhere, a) }
}
