package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/svg"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/manifest"
)

// Measures of the picture, in units.
const (
	margin   = 10.0
	names    = 150.0 // width of the first column of the table
	rowStep  = 16.0
	boxStep  = 36.0
	boxTall  = 30.0
	arrowGap = 16.0
)

// WriteSVG writes a picture of a cluster: which nodes can hold which VIPs, which pods they run,
// and their connections.
func WriteSVG(w io.Writer, c *render.Cluster, r *Report) error {
	p := picture{cluster: c, report: r}
	p.Title = plain(r.Cluster) + ": VIPs, nodes and connections"
	p.y = 24
	p.Text(margin, p.y, svg.Large, svg.Head, svg.Fit(p.Title, svg.Large, svg.Width-2*margin))
	p.table()
	p.connections()
	return p.Write(w, p.y+6)
}

// picture is a partial picture, drawn from the top to y.
type picture struct {
	svg.Drawing
	cluster *render.Cluster
	report  *Report
	y       float64
}

func (p *picture) column(n int) float64 {
	wide := (svg.Width - margin - names) / float64(len(p.cluster.Roles))
	return names + wide*(float64(n)+0.5)
}

// table draws which pools can hold which VIPs and run which pods.
func (p *picture) table() {
	wide := (svg.Width-margin-names)/float64(len(p.cluster.Roles)) - 4
	p.y += 26
	for i, role := range p.cluster.Roles {
		p.Middle(p.column(i), p.y-1, svg.Normal, svg.Head, svg.Fit(plain(role), svg.Normal, wide))
		if n := p.count(role); n > 0 {
			p.Middle(p.column(i), p.y+11, svg.Small, svg.Faint, svg.Fit(fmt.Sprintf("nodes: %d", n), svg.Small, wide))
		}
	}
	p.y += 12
	if len(p.report.Groups) > 0 {
		p.heading("Can hold the VIP, with priority")
	}
	for _, g := range p.report.Groups {
		p.row(plain(g.Name))
		for i, role := range p.cluster.Roles {
			if h, ok := g.holder(role); ok {
				p.Dot(p.column(i), p.y-3.5, 4, svg.Good)
				p.Text(p.column(i)+8, p.y, svg.Small, "", span(h.Priority, h.Most))
			}
		}
		for _, vip := range g.VIPs {
			p.y += 13
			p.Text(margin+8, p.y, svg.Small, svg.Faint, svg.Fit(vip.String(), svg.Small, svg.Width/2))
		}
		p.About += fmt.Sprintf("%s can be held by %s. ", plain(g.Name), strings.Join(g.roles(), ", "))
	}
	p.heading("Runs the static pod")
	for _, name := range []string{manifest.Keepalived, manifest.BGP, manifest.HAProxy, manifest.CoreDNS, manifest.MDNS} {
		if !slices.ContainsFunc(p.cluster.Roles, func(role string) bool { return slices.Contains(p.cluster.Pods(role), name) }) {
			continue
		}
		p.row(name)
		for i, role := range p.cluster.Roles {
			if slices.Contains(p.cluster.Pods(role), name) {
				p.Dot(p.column(i), p.y-3.5, 4, svg.Good)
			}
		}
	}
}

func (p *picture) heading(text string) {
	p.y += 20
	p.Text(margin, p.y, svg.Small, svg.Faint, text)
	p.Line(margin, p.y+5, svg.Width-margin, p.y+5, svg.Faint)
	p.y += 4
}

func (p *picture) row(name string) {
	p.y += rowStep
	p.Text(margin, p.y, svg.Normal, "", svg.Fit(name, svg.Normal, names-margin-4))
}

// count returns the known number of nodes of a role, or 0.
func (p *picture) count(role string) int {
	for _, g := range p.report.Groups {
		if h, ok := g.holder(role); ok {
			return h.Count
		}
	}
	return 0
}

// holder returns the nodes of a role in the first stage in which they can hold the VIPs.
func (g *Group) holder(role string) (Holder, bool) {
	for _, s := range g.Stages {
		for _, h := range s.Holders {
			if h.Role == role {
				return h, true
			}
		}
	}
	return Holder{}, false
}

func (g *Group) roles() (out []string) {
	for _, s := range g.Stages {
		out = lists.Add(out, lists.Map(s.Holders, func(h Holder) string { return h.Role })...)
	}
	return out
}

func span(from, to int) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d–%d", from, to)
}

// box is an end of a connection: its name, and another line.
type box struct{ name, more string }

// connections draws the connections from left to right.
func (p *picture) connections() {
	s := &p.cluster.Config.Spec
	p.heading("Connections")
	p.y += 8
	roles := map[v1alpha1.GroupRole]bool{}
	for i := range s.Groups {
		roles[s.Groups[i].Role] = true
	}
	inside := s.LoadBalancer == v1alpha1.LoadBalancerInCluster
	if inside && roles[v1alpha1.GroupAPI] {
		p.chain(box{"clients, nodes", "of the API"}, box{"API VIP", fmt.Sprintf("port %d", s.Ports.API)},
			box{"HAProxy", fmt.Sprintf("port %d", s.Ports.HAProxy)}, box{"API servers", "of all nodes"})
	}
	if inside && roles[v1alpha1.GroupIngress] {
		p.chain(box{"clients", "of applications"}, box{"ingress VIP", "ports 80, 443"}, box{"router", "of the same node"})
	}
	p.chain(box{"node and its pods", "names"}, box{"CoreDNS of the node", "port 53"}, box{"name servers", "of the network"})
	if s.Routed() {
		p.chain(box{"agent of each node", "announces VIPs"}, box{"routers", "spread connections"}, box{"nodes that serve", "all of them"})
	}
	if s.ByVRRP() {
		v := s.VRRP.Target
		p.chain(box{"keepalived of the holder", "advertises its VIP"},
			box{"keepalived of its peers", fmt.Sprintf("VRRPv%d, %s, every %d ms", v.Version, v.Mode, v.AdvertIntervalMS)})
		p.chain(box{"agent of each node", "4 times a second"}, box{"its node's services", "API server, HAProxy, router"})
		p.chain(box{"agent of each node", "watches Nodes"}, box{"API servers", "its own node's first"})
	}
}

// chain draws boxes with arrows between them.
func (p *picture) chain(boxes ...box) {
	n := float64(len(boxes))
	wide := (svg.Width - 2*margin - (n-1)*arrowGap) / n
	for i, b := range boxes {
		x := margin + float64(i)*(wide+arrowGap)
		class := svg.Box
		if strings.HasSuffix(b.name, "VIP") {
			class = svg.Strong
		}
		p.Rect(x, p.y, wide, boxTall, class, "")
		p.Middle(x+wide/2, p.y+13, svg.Small, "", svg.Fit(b.name, svg.Small, wide-2))
		p.Middle(x+wide/2, p.y+25, svg.Small, svg.Faint, svg.Fit(b.more, svg.Small, wide-2))
		if i > 0 {
			p.Arrow(x-arrowGap+2, x-2, p.y+boxTall/2)
		}
	}
	p.y += boxStep
}

func plain(text string) string { return strings.Join(strings.Fields(text), " ") }
