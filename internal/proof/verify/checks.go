package verify

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// Check is a condition that must always hold.
type Check struct {
	Name string `json:"name"`
	Rule string `json:"rule"`
}

// The checks, in order.
var (
	OneHolder      = Check{"one-holder", "at most one node holds the VIP once the nodes have settled"}
	NoOscillation  = Check{"no-oscillation", "the nodes settle after every change"}
	Together       = Check{"together", "VIPs that share a port of the cloud are on one node"}
	BootstrapKeeps = Check{"bootstrap-keeps", "the bootstrap holds the API VIP until its API server has gone"}
	IngressRouter  = Check{"ingress-router", "an ingress VIP is where a ready router of its own controller is, and never where no router answers"}
	ownRouter      = Check{"own-router", "an ingress VIP is never where the routers are of other ingress controllers alone"}
	Serves         = Check{"serves", "a node that can serve holds the VIP whenever there is one"}
	NoNeedlessMove = Check{"no-needless-move", "the VIP does not leave a node unless another serves better"}
)

func (s *Setup) checks() (out []Check) {
	if s.Group.Together {
		out = append(out, Together)
	}
	if s.Group.Role == v1alpha1.GroupIngress {
		out = append(out, IngressRouter)
		if s.Several {
			out = append(out, ownRouter)
		}
	}
	if slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Facts.Role == v1alpha1.RoleBootstrap }) {
		out = append(out, BootstrapKeeps)
	}
	return append(out, OneHolder, NoOscillation, Serves, NoNeedlessMove)
}

type violation struct {
	check  Check
	should string
	why    string
}

// view is a situation in which the election has settled.
type view struct {
	*field
	situation situation
	// before held the VIP before the last change, if it was a single node.
	before mask
	// holders hold it now.
	holders mask
}

// judge runs the checks on a view and returns the first failure, or nil.
func (v *view) judge() *violation {
	if bits.OnesCount8(uint8(v.holders)) > 1 {
		return &violation{OneHolder, "one of them, and no other", v.unreceivedReason()}
	}
	holder := v.only(v.holders)
	if b := v.bootstrap(); b >= 0 && holder != b {
		return &violation{BootstrapKeeps, v.unit.nodes[b].name, "its API server lives, and the control plane may not be able to serve yet"}
	}
	if holder >= 0 && v.at[holder].quality.never != nil {
		q := v.at[holder].quality
		return &violation{*q.never, "no node, or a node with a router", q.words + " on " + v.unit.nodes[holder].name}
	}
	if x := v.best(); x >= 0 && (holder < 0 || v.at[holder].quality.grade < v.at[x].quality.grade) {
		check := Serves
		if v.unit.group.Role == v1alpha1.GroupIngress && holder >= 0 {
			check = IngressRouter
		}
		return &violation{check, v.unit.nodes[x].name, v.reason(x, holder)}
	}
	return v.needless(holder)
}

// needless detects a move without a benefit for clients.
func (v *view) needless(holder int) *violation {
	old := v.only(v.before)
	if old < 0 || holder < 0 || old == holder || !v.runs(old) || v.at[old].quality.never != nil {
		return nil
	}
	if v.at[holder].quality.rank > v.at[old].quality.rank {
		return nil
	}
	return &violation{NoNeedlessMove, v.unit.nodes[old].name, "it held the VIP, and there is nothing better elsewhere: " + v.offer(old)}
}

// best returns the node that serves best, or -1 when none serves at all.
func (v *view) best() int {
	best, most := -1, 0
	for x := range v.nodes() {
		if grade := v.at[x].quality.grade; v.runs(x) && grade > most {
			best, most = x, grade
		}
	}
	return best
}

// bootstrap returns the bootstrap while it keeps the VIP, else -1.
func (v *view) bootstrap() int {
	for x, p := range v.unit.nodes {
		if p.kind.bootstrap() && v.runs(x) {
			return x
		}
	}
	return -1
}

func (v *view) runs(x int) bool { return v.unit.nodes[x].classes[v.situation[x]].runs }

// only returns the single node of a set, else -1.
func (v *view) only(m mask) int {
	if bits.OnesCount8(uint8(m)) != 1 {
		return -1
	}
	return bits.TrailingZeros8(uint8(m))
}

func (v *view) offer(x int) string {
	return v.unit.nodes[x].name + " offers " + v.at[x].quality.words
}

func (v *view) reason(best, holder int) string {
	if holder < 0 {
		return v.offer(best) + ", and no node holds the VIP"
	}
	return v.offer(best) + "; " + v.offer(holder)
}

// unreceivedReason explains why two nodes that hold a VIP do not receive each other's adverts.
func (v *view) unreceivedReason() string {
	for x := range v.nodes() {
		for y := range v.nodes() {
			if x == y || !v.holders.has(x) || !v.holders.has(y) {
				continue
			}
			for i, receives := range v.unit.receives[x][y] {
				if !receives {
					a, b := v.unit.nodes[x], v.unit.nodes[y]
					return fmt.Sprintf("%s does not receive the advertisements of %s: %s", a.name, b.name, difference(&a.instances[i], b, i))
				}
			}
		}
	}
	return "each considers itself the better one"
}

// difference explains why instance a does not receive the adverts of node b.
func difference(a *keepalivedconf.Instance, node *player, i int) string {
	if i >= len(node.instances) {
		return "it has no such instance"
	}
	b := &node.instances[i]
	switch {
	case a.Version != b.Version:
		return fmt.Sprintf("VRRPv%d and VRRPv%d", a.Version, b.Version)
	case a.RouterID != b.RouterID:
		return fmt.Sprintf("virtual router IDs %d and %d", a.RouterID, b.RouterID)
	case a.VIP() != b.VIP():
		return fmt.Sprintf("VIPs %s and %s", a.VIP(), b.VIP())
	case a.Password != b.Password:
		return "their passwords differ"
	case a.Version == 2 && a.AdvertMS != b.AdvertMS:
		return fmt.Sprintf("advertisements every %v and every %v", v1alpha1.Millis(a.AdvertMS), v1alpha1.Millis(b.AdvertMS))
	case len(a.Peers) == 0 || len(b.Peers) == 0:
		return "one sends to peers, the other by multicast"
	case !b.SendsTo(a.Source):
		return fmt.Sprintf("%s is not a peer of %s", a.Source, node.name)
	default:
		return fmt.Sprintf("it accepts no advertisements from %s, or none with TTL %d", b.Source, b.SentTTL())
	}
}
