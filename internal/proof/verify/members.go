package verify

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// member is a node that can hold the VIPs of a group.
type member struct {
	v1alpha1.Peer
	prefixes []netip.Prefix
	invented bool
}

// members returns the nodes of the input, then made-up ones, of all pools that can hold the
// group's VIPs in turn.
func (b *builder) members() []member {
	spec := &b.cluster.Config.Spec
	var pools [][]member
	total := 0
	for _, role := range b.cluster.Roles {
		if role != v1alpha1.RoleBootstrap && spec.Hosts(&b.group, role, nil) {
			pools = append(pools, b.pool(role, nil))
			total += len(pools[len(pools)-1])
		}
	}
	if total == 0 {
		pools = [][]member{b.labelled()}
		total = len(pools[0])
	}
	most := min(total, b.most)
	if most < total {
		b.addNote("%d of %d nodes", most, total)
	}
	var first []member
	if b.stage == StageInstallation && spec.Hosts(&b.group, v1alpha1.RoleBootstrap, nil) {
		first = b.bootstrap()
	}
	out := append(first, b.without(first, inTurn(pools, most))...)
	b.address(out)
	return out
}

// without removes the node that the bootstrap host becomes when it has finished (the rendezvous
// host of agent-based installations).
func (b *builder) without(first, list []member) []member {
	return slices.DeleteFunc(list, func(m member) bool {
		same := slices.ContainsFunc(first, func(f member) bool {
			return slices.ContainsFunc(f.Addresses, func(a netip.Addr) bool { return slices.Contains(m.Addresses, a) })
		})
		if same {
			b.addNote("%s is the bootstrap host until that has finished", m.Name)
		}
		return same
	})
}

// inTurn takes one of each list in turn, up to most.
func inTurn(pools [][]member, most int) []member {
	picked := make([]int, len(pools))
	for n := 0; n < most; {
		for i := range pools {
			if n < most && picked[i] < len(pools[i]) {
				picked[i]++
				n++
			}
		}
	}
	var out []member
	for i, p := range pools {
		out = append(out, p[:picked[i]]...)
	}
	return out
}

// pool returns the nodes of a role: those of the input, and made-up ones up to the number of
// its replicas.
func (b *builder) pool(role string, labels map[string]string) []member {
	var out []member
	taken := map[string]bool{}
	for _, p := range b.cluster.Config.Spec.Peers {
		taken[p.Name] = true
		if p.Role == role && labels == nil {
			out = append(out, member{Peer: p})
		}
	}
	n, known := b.cluster.Replicas[role]
	if !known {
		n = usualNodes
		b.addNote("the number of nodes of pool %s is unknown: %d are examined", role, n)
	}
	for i := 0; len(out) < n; i++ {
		if name := fmt.Sprintf("%s-%d", role, i); !taken[name] {
			out = append(out, member{Peer: v1alpha1.Peer{Name: name, Role: role, Labels: labels}, invented: true})
		}
	}
	return out
}

// labelled makes up nodes with the labels of the group's selector: no pool has them by itself.
func (b *builder) labelled() []member {
	labels := map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(b.group.NodeSelector)) {
		labels[k] = b.group.NodeSelector[k]
		words = append(words, k+"="+b.group.NodeSelector[k])
	}
	b.addNote("nodes with the labels %s, which no single pool has", strings.Join(words, ", "))
	return b.pool(v1alpha1.RoleWorker, labels)
}

// bootstrap returns the bootstrap host, or nothing.
func (b *builder) bootstrap() []member {
	c := b.cluster
	if !c.BootstrapCompatible() {
		b.addNote("OpenShift's own keepalived on the bootstrap host does not understand these settings: both sides hold the VIP until it is gone (spec.vrrp.interoperable: false)")
		return nil
	}
	if !c.OwnsBootstrap() {
		b.addNote("the bootstrap runs OpenShift's own keepalived: priority %d, advertisements to the control-plane nodes alone", vrrp.BootstrapPriority)
		for _, role := range c.Roles {
			if role == v1alpha1.RoleArbiter && !c.Config.Spec.Hosts(&b.group, role, nil) {
				b.addNote("the arbiter takes no part: it would receive no advertisement of OpenShift's own keepalived")
			}
		}
	}
	m := member{Peer: v1alpha1.Peer{Name: v1alpha1.RoleBootstrap, Role: v1alpha1.RoleBootstrap}, invented: true}
	peers := c.Config.Spec.Peers
	if i := slices.IndexFunc(peers, func(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleBootstrap }); i >= 0 {
		// Its address of another family may be unknown: rendezvousIP is one address.
		m.Peer = peers[i]
		m.invented = slices.ContainsFunc(b.group.VIPs, func(vip netip.Addr) bool {
			return !slices.ContainsFunc(m.Addresses, func(a netip.Addr) bool { return a.Is4() == vip.Is4() })
		})
	}
	return []member{m}
}

// address sets missing addresses of members, in the machine network of each VIP's family, and
// the prefixes of all.
func (b *builder) address(list []member) {
	spec := &b.cluster.Config.Spec
	taken := map[netip.Addr]bool{}
	for _, g := range spec.Groups {
		for _, vip := range g.VIPs {
			taken[vip] = true
		}
	}
	for _, p := range spec.Peers {
		for _, a := range p.Addresses {
			taken[a] = true
		}
	}
	for i := range list {
		m := &list[i]
		m.Addresses = slices.Clone(m.Addresses)
		for _, vip := range b.group.VIPs {
			same := func(a netip.Addr) bool { return a.Is4() == vip.Is4() }
			if m.invented && !slices.ContainsFunc(m.Addresses, same) {
				m.Addresses = append(m.Addresses, free(networkOf(spec, vip), taken))
			}
		}
		for _, a := range m.Addresses {
			m.prefixes = append(m.prefixes, netip.PrefixFrom(a, networkOf(spec, a).Bits()))
		}
	}
}

// networkOf returns the network of an address: the nodes' one that holds it, else one of its
// family, else a usual one around it.
func networkOf(s *v1alpha1.ClusterConfigSpec, a netip.Addr) netip.Prefix {
	network := v1alpha1.UsualNetwork(a)
	found := false
	for _, n := range s.AssumedNetworks() {
		if n.Contains(a) {
			return n.Masked()
		}
		if !found && n.Addr().Is4() == a.Is4() {
			network, found = n.Masked(), true
		}
	}
	return network
}

// free returns the first free address of a network. Networks without one use that of their
// neighbour: only the order of addresses counts.
func free(n netip.Prefix, taken map[netip.Addr]bool) netip.Addr {
	a := n.Addr().Next()
	for taken[a] {
		a = a.Next()
	}
	taken[a] = true
	return a
}
