package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// summary prints at a terminal what the cluster is and what was done.
func (a *app) summary(c *render.Cluster, done string) {
	if command.Terminal(a.Err) && !a.quiet {
		fmt.Fprint(a.Err, describe(summarize(c)))
	}
	if done != "" {
		a.printStatus("%s", done)
	}
}

// printStatus prints what was done to standard error, as standard output is for rendered files.
func (a *app) printStatus(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.Err, command.SafeLine(fmt.Sprintf(format, args...)))
	}
}

// chosenBy names the chooser of VIPs that the input does not have.
func chosenBy(given bool) string {
	if given {
		return ""
	}
	return " (the installer's default)"
}

// noGroupsText replaces the groups of a cluster without any.
const noGroupsText = "No node of this cluster holds a VIP: an external load balancer does, or there is none."

// clusterSummary is a cluster's summary: what it will run, and why.
type clusterSummary struct {
	Domain   string `json:"domain"`
	Platform string `json:"platform"`
	Topology string `json:"topology"`
	// OpenShift is the release, or the range of releases, that the output is for.
	OpenShift string         `json:"openshift"`
	Pools     []string       `json:"pools"`
	Groups    []groupSummary `json:"groups"`
	// VRRP is missing where no node holds a VIP; nodes start with Start, if that differs.
	VRRP  *v1alpha1.VRRPSettings `json:"vrrp,omitempty"`
	Start *v1alpha1.VRRPSettings `json:"start,omitempty"`
	// Election describes how a VIP's holder is elected.
	Election string   `json:"election"`
	Notes    []string `json:"notes"`
}

// groupSummary is a group of VIPs that move together.
type groupSummary struct {
	Name string       `json:"name"`
	VIPs []netip.Addr `json:"vips"`
	// InstallersDefault is set where the input does not have the VIPs.
	InstallersDefault bool `json:"installersDefault,omitempty"`
	VirtualRouterID   int  `json:"virtualRouterID,omitempty"`
	// Announce is set where it differs from other groups'.
	Announce v1alpha1.Announce `json:"announce,omitempty"`
}

func summarize(c *render.Cluster) *clusterSummary {
	s := c.Config.Spec
	out := &clusterSummary{
		Domain: s.Domain, Platform: string(s.Platform), Topology: string(s.Topology), OpenShift: cmp.Or(c.Version, inputflags.Versions()),
		Pools: c.Roles, Groups: []groupSummary{}, Election: election(c), Notes: []string{},
	}
	inCluster := s.ByVRRP()
	if inCluster {
		out.VRRP = &s.VRRP.Target
		if c.Migrates() {
			out.Start = s.VRRP.Start
		}
	}
	for _, g := range s.Groups {
		if len(g.VIPs) == 0 {
			continue
		}
		group := groupSummary{Name: g.Name, VIPs: g.VIPs, InstallersDefault: !c.Given(&g)}
		if inCluster {
			group.VirtualRouterID = g.VirtualRouterID
		}
		if inCluster && s.Routed() {
			group.Announce = s.AnnounceOf(&g)
		}
		out.Groups = append(out.Groups, group)
	}
	external := ""
	if s.DNS.External {
		external = "the site's name servers answer for the API and for routes, nodes included (dnsRecordsType: External); 'vipgen external-lb plan' lists the names"
	}
	if c.ReplacesLoadBalancer() {
		external = "for a running cluster: its Infrastructure object keeps loadBalancer.type OpenShiftManagedDefault, with the apiServerInternalIPs and ingressIPs of its installation; vipgen's files keep OpenShift's load balancer off the nodes, and its keepalived comes back when they are deleted ('vipgen remove')"
	}
	if c.ReplacesKeepalived() {
		external = "for a running cluster: its Infrastructure object keeps the apiServerInternalIPs and ingressIPs of its installation; vipgen's files keep OpenShift's keepalived off the nodes, and it comes back when they are deleted ('vipgen remove')"
	}
	for _, note := range []string{profileReason(c), external, release(c), tagged(c)} {
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

func describe(c *clusterSummary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster %s (%s, %s), OpenShift %s, pools %s\n", c.Domain, c.Platform, c.Topology, c.OpenShift, strings.Join(c.Pools, ", "))
	width := 10
	for _, g := range c.Groups {
		width = max(width, len(g.Name))
	}
	for _, g := range c.Groups {
		fmt.Fprintf(&b, "  %-*s %s%s", width, g.Name, list(g.VIPs), chosenBy(!g.InstallersDefault))
		if g.VirtualRouterID != 0 {
			fmt.Fprintf(&b, ", virtual router ID %d", g.VirtualRouterID)
		}
		if g.Announce != "" {
			fmt.Fprintf(&b, ", announce: %s", g.Announce)
		}
		b.WriteByte('\n')
	}
	b.WriteString("  " + c.Election + "\n")
	for _, note := range c.Notes {
		b.WriteString("note: " + note + "\n")
	}
	return b.String()
}

// tagged lists the images with a tag, which a registry may move to another image.
func tagged(c *render.Cluster) string {
	var names []string
	for _, i := range render.ImageList(c.Images) {
		if !strings.Contains(i[1], "@") {
			names = append(names, i[0])
		}
	}
	if names == nil {
		return ""
	}
	return "images by tag, not by digest: " + strings.Join(names, ", ") + "; pin them by spec.images or --release-info ('vipgen images' lists them)"
}

// release describes what depends on the OpenShift release where none is given.
func release(c *render.Cluster) string {
	if c.Version != "" || c.OS != ignition.OpenShift {
		return ""
	}
	oldest := ignition.Target{Variant: ignition.OpenShift, Version: ignition.SupportedOpenShift()[0]}
	text := fmt.Sprintf("no openshiftVersion: written for %s and later (Ignition %s, keepalived %s, HAProxy %s)",
		oldest.Version, ignition.NewEncoder(oldest).IgnitionVersion(), assets.Oldest.Keepalived[0], assets.Oldest.HAProxy)
	if assumed := c.Assumed(); assumed != "" {
		text += "; this cluster needs " + assumed
	}
	return text + "; spec.openshiftVersion or --openshift-version has the release checked"
}

// election describes the VRRP settings of the nodes, whether they start next to the operator's
// own keepalived, and why.
func election(c *render.Cluster) string {
	s := c.Config.Spec
	switch {
	case s.LoadBalancer == v1alpha1.LoadBalancerExternal:
		return "external load balancer: nodes run DNS only"
	case s.LoadBalancer == v1alpha1.LoadBalancerNone && len(s.Groups) > 0:
		return "no VIPs: nodes run DNS only; the names of API and routes resolve to the control-plane node's own address"
	case s.LoadBalancer == v1alpha1.LoadBalancerNone:
		return "no VIPs: nodes run DNS only, without the names of API and routes"
	case s.Routed() && s.ByVRRP():
		return fmt.Sprintf("announce: %s: %s; announce: vrrp: %s", s.RoutedBy(), routes(&s), byVRRP(c))
	case s.Routed():
		return routes(&s)
	}
	return byVRRP(c)
}

// routes describes how routers learn of VIPs.
func routes(s *v1alpha1.ClusterConfigSpec) string {
	if s.RoutedBy() == v1alpha1.AnnounceTable {
		return fmt.Sprintf("every node that serves has the VIPs in routing table %d, for its own BGP speaker", v1alpha1.AnnounceTableNumber)
	}
	each := ""
	if s.BGP.OnePath() {
		each = ", each with another preference"
	}
	return fmt.Sprintf("every node that serves announces the VIPs to its routers by BGP, as AS %d%s", s.BGP.LocalASN, each)
}

func byVRRP(c *render.Cluster) string {
	s := c.Config.Spec
	switch {
	case c.Migrates():
		return fmt.Sprintf("starts as %s, then migrates to %s: OpenShift's own keepalived holds the API VIP on the bootstrap host (loadBalancer.type: UserManaged avoids the migration)",
			settings(*s.VRRP.Start), settings(s.VRRP.Target))
	case c.OwnsBootstrap():
		return fmt.Sprintf("%s from the first packet: no other keepalived runs in this cluster", settings(s.VRRP.Target))
	case s.VRRP.Target == v1alpha1.ClassicSettings(v1alpha1.ModeUnicast):
		return fmt.Sprintf("%s from the first packet, as OpenShift's own keepalived on the bootstrap host", settings(s.VRRP.Target))
	default:
		return fmt.Sprintf("%s from the first packet, which OpenShift's own keepalived on the bootstrap host does not understand: split brain, both hold the API VIP until the bootstrap host is gone", settings(s.VRRP.Target))
	}
}

// profileReason describes the profile of a cluster and the reason for it, if known.
func profileReason(c *render.Cluster) string {
	if c.ProfileReason == "" {
		return ""
	}
	return fmt.Sprintf("profile %s: %s", c.Config.Spec.VRRP.Target.Profile, c.ProfileReason)
}

func settings(v v1alpha1.VRRPSettings) string {
	return fmt.Sprintf("%s (VRRPv%d, %s, %s)", v.Profile, v.Version, command.Millis(v.AdvertIntervalMS), v.Mode)
}

// lineWidth is the width of paragraphs, in bytes.
const lineWidth = 84

// wrap breaks a text into lines of at most width bytes, between words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func list[T fmt.Stringer](values []T) string {
	return lists.Join(values, ", ")
}

// numbers formats numbers, "-" for none.
func numbers(list []int) string {
	out := lists.Map(list, strconv.Itoa)
	return cmp.Or(strings.Join(out, ", "), "-")
}

// grouped formats a number with a comma between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
