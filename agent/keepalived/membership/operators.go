package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// operatorsTime bounds how long OpenShift's own keepalived takes to make a node a
	// peer after the list of nodes changed. Its monitor (baremetal-runtimecfg,
	// KeepalivedWatch) applies a result that three polls, 10 s apart, agree on: after 20
	// to 30 s. Its list of nodes may be 5 s old (NodeWatcher), and polls and the reload
	// take a moment.
	operatorsTime = 45 * time.Second
	// operatorsMost bounds that where the list keeps changing.
	operatorsMost = 3 * time.Minute
)

// operatorPeers are the peers that run OpenShift's own keepalived while this node joins
// (hard case 49). Only peers whose adverts arrive surely know this node.
type operatorPeers struct {
	peers   []v1alpha1.Peer
	nodes   string       // all nodes in the last list
	changed time.Time    // last change of nodes
	senders []netip.Addr // of received adverts
}

// follow replaces the peers, and the list of all nodes.
func (o *operatorPeers) follow(now time.Time, peers, all []v1alpha1.Peer) {
	list := lists.Map(all, func(n v1alpha1.Peer) string { return fmt.Sprint(n.Name, n.Role, n.Addresses) })
	if nodes := strings.Join(list, " "); nodes != o.nodes || o.changed.IsZero() {
		o.nodes, o.changed = nodes, now
	}
	o.peers = peers
}

func (o *operatorPeers) silent() (names []string) {
	for _, p := range o.peers {
		if !slices.ContainsFunc(o.senders, p.Has) {
			names = append(names, p.Name)
		}
	}
	return names
}

// left returns how much longer the peers may not know a node that joined at since; 0
// without peers.
func (o *operatorPeers) left(now, since time.Time) time.Duration {
	if len(o.peers) == 0 {
		return 0
	}
	from := since
	if o.changed.After(since) {
		from = o.changed
	}
	return max(min(from.Add(operatorsTime).Sub(now), since.Add(operatorsMost).Sub(now)), 0)
}

// operators returns the peers in the settings of OpenShift's own keepalived that have
// announced none of an agent: they may run that keepalived, as the bootstrap host does.
func (m *Membership) operators(n *Node) []v1alpha1.Peer {
	node := n.Facts.Node
	if !n.Facts.Cluster.Spec.VRRP.LikeOpenShift() || node.VRRP == nil || !node.VRRP.LikeOperator() || m.nodes == nil {
		return nil
	}
	updates := m.nodes.Current().Updates
	return slices.DeleteFunc(slices.Clone(node.Peers), func(p v1alpha1.Peer) bool {
		gone := p.Role == v1alpha1.RoleBootstrap && node.BootstrapGone
		announced := slices.ContainsFunc(updates, func(u nodelist.NodeUpdate) bool { return u.Name == p.Name && u.VRRP != "" })
		return gone || announced || !slices.ContainsFunc(n.Conf.Instances, func(i keepalived.Instance) bool { return slices.ContainsFunc(i.Peers, p.Has) })
	})
}
