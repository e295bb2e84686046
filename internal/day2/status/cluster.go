package status

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/state"
)

// Cluster returns the status of the cluster from everything that was read.
func (r *Reader) Cluster() *Cluster {
	c := &Cluster{VIPs: []VIP{}, Nodes: []Node{}, Findings: append([]Finding{}, r.findings...)}
	if r.full {
		c.find(unreadable, "", "", "more than %d nodes: the rest is left out", maxNodes)
	}
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[name]
		n.describe()
		c.Nodes = append(c.Nodes, *n)
	}
	c.vips()
	c.judge()
	slices.SortStableFunc(c.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Code), rank(b.Code)), cmp.Compare(a.VIP, b.VIP), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Text, b.Text))
	})
	return c
}

// rank orders findings, those that clients notice first.
func rank(c Code) int {
	switch c {
	case splitBrain:
		return 0
	case noHolder:
		return 1
	case settingsDiffer:
		return 2
	}
	return 3
}

func (n *Node) describe() {
	n.Jobs = map[string]string{}
	if k := n.report.Keepalived; k != nil {
		n.keepalived(k)
		n.OwnRequests = byVIP
	}
	if b := n.report.BGP; b != nil {
		n.bgp(b)
		n.OwnRequests = byVIP
	}
	if h := n.report.HAProxy; h != nil {
		n.Jobs[h.JobName()] = serves(h.Serving, h.Why)
		if h.Serving && h.Leaving {
			n.Jobs[h.JobName()] = "serves, and is being stopped"
		}
	}
	if f := n.report.Firewall; f != nil {
		n.Jobs[f.JobName()] = either(f.InPlace, "redirect in place", "no redirect"+reasonSuffix(f.Why))
		n.OwnRequests = either(f.Own, ownHAProxy, byVIP)
	}
	if d := n.report.CoreDNS; d != nil {
		n.Jobs[d.JobName()] = serves(d.Serving, d.Why)
	}
	if m := n.report.MDNS; m != nil {
		n.Jobs[m.JobName()] = either(m.Announced, "announced", "not announced"+reasonSuffix(m.Why))
	}
}

func (n *Node) keepalived(k *state.Keepalived) {
	n.Jobs[k.JobName()] = either(k.Wanted, "takes part", "takes no part")
	n.LeftOut = k.LeftOut
	if k.VRRP != nil {
		n.Settings = k.VRRP.String()
	}
	if m := k.Migration; m != nil {
		n.MigratesTo, n.WaitsFor = m.Target.String(), m.WaitsFor
	}
	for _, i := range k.Instances {
		if i.Holds {
			n.Holds = append(n.Holds, i.VIP)
		}
	}
	n.checks(k.Facts)
}

func (n *Node) bgp(b *state.BGP) {
	before := len(n.Holds)
	for _, v := range b.VIPs {
		if v.Announced {
			n.Holds = append(n.Holds, v.VIP)
		}
	}
	n.Jobs[b.JobName()] = fmt.Sprintf("announces %d of %d", len(n.Holds)-before, len(b.VIPs))
	n.checks(b.Facts)
}

func (n *Node) checks(facts []state.Fact) {
	for _, f := range facts {
		if !f.OK {
			n.Unhealthy = append(n.Unhealthy, f.Name+reasonSuffix(f.Why))
		}
	}
}

func serves(is bool, why string) string {
	return either(is, "serves", "does not serve"+reasonSuffix(why))
}

func reasonSuffix(why string) string {
	if why == "" {
		return ""
	}
	first, _, _ := strings.Cut(why, "\n")
	return ": " + first
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// vips collects the nodes that take part for each VIP.
func (c *Cluster) vips() {
	all := map[netip.Addr]*VIP{}
	add := func(addr netip.Addr, instance string, holds, routed bool, m Member) {
		if !addr.IsValid() {
			return
		}
		v := all[addr]
		if v == nil {
			v = &VIP{VIP: addr, Instance: instance, Routed: routed, Holders: []string{}}
			all[addr] = v
		}
		if holds {
			v.Holders = append(v.Holders, m.Node)
		}
		v.Members = append(v.Members, m)
	}
	for _, n := range c.Nodes {
		if k := n.report.Keepalived; k != nil {
			for _, i := range k.Instances {
				add(i.VIP, i.Name, i.Holds, false, member(n.Name, &i))
			}
		}
		if b := n.report.BGP; b != nil {
			for _, v := range b.VIPs {
				add(v.VIP, v.Group, v.Announced, true, announcer(n.Name, &v))
			}
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
		v := all[a]
		slices.SortStableFunc(v.Members, func(a, b Member) int {
			holds := func(m Member) int { return slices.Index(v.Holders, m.Node) }
			return cmp.Or(cmp.Compare(min(holds(b), 0), min(holds(a), 0)), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Node, b.Node))
		})
		c.VIPs = append(c.VIPs, *v)
	}
}

func member(node string, i *state.Instance) Member {
	m := Member{Node: node, Priority: i.Priority, Fault: i.Fault, Peers: len(i.Peers)}
	for _, t := range i.Terms {
		switch veto := t.Points == 0; {
		case veto && t.On:
			m.Vetoes = append(m.Vetoes, t.Name)
		case !veto && !t.On:
			m.Lacks = append(m.Lacks, t.Name)
		}
	}
	if h := i.Holder; h != nil && !i.Holds {
		m.Holder = cmp.Or(h.Node, h.Address.String())
	}
	return m
}

func announcer(node string, v *state.AnnouncedVIP) Member {
	m := Member{Node: node, Preference: v.Preference, Fault: !v.Announced}
	if m.Fault && v.Why != "" {
		m.Vetoes = []string{v.Why}
	}
	return m
}

func (c *Cluster) find(code Code, node, vip, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{Code: code, Node: node, VIP: vip, Text: fmt.Sprintf(format, args...)})
}
