package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// staleAfter is how much older than the latest a node's state may be: querying all nodes of a
// large cluster, one after the other, takes minutes.
const staleAfter = 15 * time.Minute

func (c *Cluster) judge() {
	for i := range c.VIPs {
		if v := &c.VIPs[i]; v.Routed {
			if len(v.Holders) == 0 {
				nodes := lists.Map(v.Members, func(m Member) string { return m.Node })
				c.find(noHolder, "", v.VIP.String(), "none of %s announces %s%s", firstNames(nodes), v.Instance, c.apart(nodes))
			}
		} else {
			c.judgeHolders(v)
			c.judgePeers(v)
		}
	}
	c.judgeNodes()
	c.differ(settingsDiffer, "nodes with different VRRP settings do not receive each other's advertisements", func(n *Node) string { return n.Settings })
	c.differ(versionsDiffer, "agents of several versions", func(n *Node) string { return n.Version })
}

// apart describes the time between the readings of some nodes; "" if unknown or short.
func (c *Cluster) apart(nodes []string) string {
	var first, last time.Time
	for _, n := range c.Nodes {
		if n.Time.IsZero() || !slices.Contains(nodes, n.Name) {
			continue
		}
		if first.IsZero() || n.Time.Before(first) {
			first = n.Time
		}
		if n.Time.After(last) {
			last = n.Time
		}
	}
	if d := last.Sub(first); d >= 2*time.Second {
		return fmt.Sprintf(" (read %v apart: the VIP may have moved meanwhile)", d.Round(time.Second))
	}
	return ""
}

func (c *Cluster) judgeHolders(v *VIP) {
	vip := v.VIP.String()
	switch len(v.Holders) {
	case 1:
		return
	case 0:
	default:
		c.find(splitBrain, "", vip, "%s hold %s%s", firstNames(v.Holders), v.Instance, c.apart(v.Holders))
		return
	}
	var members, received []string
	for _, m := range v.Members {
		members = append(members, m.Node)
		if m.Holder != "" && !slices.Contains(received, m.Holder) {
			received = append(received, m.Holder)
		}
	}
	without := slices.DeleteFunc(slices.Clone(received), func(name string) bool { return c.read(name) })
	switch {
	case len(without) > 0:
		c.find(missingState, "", vip, "%s holds it, by the advertisements that others receive, and its state was not read", firstNames(without))
	case len(received) > 0:
		c.find(noHolder, "", vip, "no node reports that it holds %s, although others receive advertisements of %s%s", v.Instance, firstNames(received), c.apart(members))
	default:
		c.find(noHolder, "", vip, "none of %s holds %s%s", firstNames(members), v.Instance, c.apart(members))
	}
}

// read reports whether the state of a node's keepalived was read.
func (c *Cluster) read(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Name == name && n.report.Keepalived != nil })
}

// judgePeers compares the number of nodes that take part with the number that each of them
// knows.
func (c *Cluster) judgePeers(v *VIP) {
	byCount := map[int][]string{}
	for _, m := range v.Members {
		byCount[m.Peers] = append(byCount[m.Peers], m.Node)
	}
	counts := slices.Sorted(maps.Keys(byCount))
	if most := counts[len(counts)-1]; len(counts) == 1 {
		if missing := most + 1 - len(v.Members); missing > 0 && most > 0 {
			c.find(missingState, "", v.VIP.String(), "%d of the %d nodes that take part for %s were not read", missing, most+1, v.Instance)
		}
		return
	}
	parts := lists.Map(counts, func(n int) string { return fmt.Sprintf("%s: %d", firstNames(byCount[n]), n) })
	c.find(peersDiffer, "", v.VIP.String(), "the nodes do not know the same peers for %s: %s", v.Instance, strings.Join(parts, "; "))
}

func (c *Cluster) judgeNodes() {
	var latest time.Time
	keepalived, bgp := false, false // run on nodes with VIPs
	for _, n := range c.Nodes {
		if n.Time.After(latest) {
			latest = n.Time
		}
		keepalived, bgp = keepalived || n.report.Keepalived != nil, bgp || n.report.BGP != nil
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.report.Empty():
			c.find(missingState, n.Name, "", "the cluster has this node, and its state was not read, or no job of its agent runs")
			continue
		case !n.Time.IsZero() && latest.Sub(n.Time) > staleAfter:
			c.find(stale, n.Name, "", "its state was read %v before the latest", latest.Sub(n.Time).Round(time.Second))
		}
		if n.report.Keepalived == nil && n.report.BGP == nil && (keepalived || bgp) {
			c.find(jobMissing, n.Name, "", "no state of %s: the job does not run", either(keepalived, "keepalived", "bgp"))
		}
		c.judgeKeepalived(n)
		c.judgeBGP(n)
		c.judgeBalancer(n)
		c.judgeNames(n)
	}
}

func (c *Cluster) judgeKeepalived(n *Node) {
	k := n.report.Keepalived
	if k == nil {
		return
	}
	for _, why := range k.LeftOut {
		if reason, known := vrrp.ParseLeftOut(why); !known {
			c.find(leftOut, n.Name, "", "%s", firstLine(why))
		} else if !reason.Intended() {
			c.Findings = append(c.Findings, Finding{Code: leftOut, Node: n.Name, Text: firstLine(why), Next: reason.Next()})
		}
	}
	if k.Wanted && k.PID == 0 {
		c.find(notRunning, n.Name, "", "keepalived should run and does not")
	}
	if k.Wanted && !k.Guard.InPlace {
		c.find(guardMissing, n.Name, "", "VRRP packets of other hosts reach keepalived: the guard is not in place")
	}
	c.refused(n, "keepalived", cmp.Or(k.ClusterProblem, k.Problem))
}

func (c *Cluster) judgeBGP(n *Node) {
	b := n.report.BGP
	if b == nil {
		return
	}
	for _, p := range b.Peers {
		switch {
		case !p.Established():
			c.find(sessionDown, n.Name, "", "no BGP session with %s (AS %d): %s%s", p.Name(), p.ASN, p.State, reasonSuffix(p.Problem))
		case p.BFD != "" && p.BFD != "up":
			c.find(bfdDown, n.Name, "", "BFD with %s (AS %d) is not up: a dead link is noticed after the hold time of BGP%s", p.Name(), p.ASN, reasonSuffix(p.Problem))
		}
	}
	if b.Problem != "" {
		c.find(bgpProblem, n.Name, "", "%s", firstLine(b.Problem))
	}
	c.refused(n, "bgp", b.ClusterProblem)
}

// judgeBalancer checks HAProxy and the redirect to it.
func (c *Cluster) judgeBalancer(n *Node) {
	h, f := n.report.HAProxy, n.report.Firewall
	switch {
	case h == nil && f == nil:
		return
	case h == nil:
		c.find(jobMissing, n.Name, "", "no state of haproxy: the job does not run")
	case f == nil:
		c.find(jobMissing, n.Name, "", "no state of firewall: the job does not run")
	}
	if f != nil && !f.InPlace && f.Serving {
		c.find(redirectMissing, n.Name, "", "HAProxy serves, and the API VIPs are not redirected to it%s", reasonSuffix(f.Why))
	}
	if f != nil && f.Operators != "" {
		c.find(redirectLeft, n.Name, "", "OpenShift's own redirect is still there, until vipgen's is in place: %s", f.Operators)
	}
	if h == nil {
		return
	}
	c.refused(n, "haproxy", h.Problem)
	if !h.Serving {
		c.find(notServing, n.Name, "", "HAProxy does not serve%s", reasonSuffix(h.Why))
	}
	for _, b := range h.Backends {
		if !b.Up {
			c.find(backendDown, n.Name, "", "%s %s (%s) is down for its HAProxy", either(h.Own, "HAProxy of", "API server"), b.Name, b.Address)
		}
	}
}

func (c *Cluster) judgeNames(n *Node) {
	if d := n.report.CoreDNS; d != nil {
		c.refused(n, "coredns", d.Problem)
		if !d.Serving {
			c.find(notServing, n.Name, "", "CoreDNS does not serve%s", reasonSuffix(d.Why))
		}
	}
	if m := n.report.MDNS; m != nil && !m.Announced {
		c.find(nameNotAnnounced, n.Name, "", "%s is not announced%s", m.Name, reasonSuffix(m.Why))
	}
}

func (c *Cluster) refused(n *Node, job, problem string) {
	if problem != "" {
		c.find(configRefused, n.Name, "", "%s continues with an earlier configuration: %s", job, firstLine(problem))
	}
}

// differ reports nodes with other values than most.
func (c *Cluster) differ(code Code, what string, of func(*Node) string) {
	byValue := map[string][]string{}
	for i := range c.Nodes {
		if value := of(&c.Nodes[i]); value != "" && value != leftOutOfSwitch {
			byValue[value] = append(byValue[value], c.Nodes[i].Name)
		}
	}
	if len(byValue) < 2 {
		return
	}
	parts := lists.Map(slices.Sorted(maps.Keys(byValue)), func(value string) string { return value + " on " + firstNames(byValue[value]) })
	c.find(code, "", "", "%s: %s", what, strings.Join(parts, "; "))
}

// leftOutOfSwitch is the annotation of a node that a mode file leaves out.
const leftOutOfSwitch = "nothing"

func firstNames(names []string) string { return lists.Summarize(names, 5, ", ") }

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
