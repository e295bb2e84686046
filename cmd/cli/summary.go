package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/render"
)

// terminal says whether a stream is one that a person reads.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// safe gives text without what a terminal would obey: control characters, and
// others that do not print, are shown as Go writes them in strings.
func safe(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// safeLine is safe for text that must stay on its line.
func safeLine(s string) string { return strings.ReplaceAll(safe(s), "\n", `\n`) }

// summary tells a person at a terminal what was done.
func (a *app) summary(c *render.Cluster, done string) {
	if !terminal(a.err) {
		return
	}
	fmt.Fprint(a.err, describe(c))
	if done != "" {
		fmt.Fprintln(a.err, done)
	}
}

// chosenBy says of VIPs that the input does not have who gives them.
func chosenBy(given bool) string {
	if given {
		return ""
	}
	return " (the installer's default)"
}

// versions are those of OpenShift that can be written for.
func versions() string {
	known := ignition.SupportedOpenShift()
	return known[0] + " to " + known[len(known)-1]
}

// describe says in a few lines what a cluster will run and why.
func describe(c *render.Cluster) string {
	var b strings.Builder
	s := c.Config.Spec
	version := c.Version
	if version == "" {
		version = "any, " + versions()
	}
	fmt.Fprintf(&b, "Cluster %s (%s, %s), OpenShift %s, pools %s\n", s.Domain, s.Platform, s.Topology, version, strings.Join(c.Roles, ", "))
	width := 10
	for _, g := range s.Groups {
		width = max(width, len(g.Name))
	}
	for _, g := range s.Groups {
		if len(g.VIPs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-*s %s%s", width, g.Name, addresses(g.VIPs), chosenBy(c.Given(&g)))
		if s.LoadBalancer == v1alpha1.LoadBalancerInCluster {
			fmt.Fprintf(&b, ", virtual router ID %d", g.VirtualRouterID)
		}
		b.WriteByte('\n')
	}
	b.WriteString("  " + election(c) + "\n")
	if why := profileWhy(c); why != "" {
		b.WriteString("  " + why + "\n")
	}
	if s.DNS.External {
		b.WriteString("  DNS: the site's name servers answer for the API and for routes, nodes included (dnsRecordsType: External); 'vipgen external-lb plan' lists the names\n")
	}
	b.WriteString(release(c))
	return b.String()
}

// release says what depends on the release of OpenShift where none is given.
func release(c *render.Cluster) string {
	if c.Version != "" || c.OS != ignition.OpenShift {
		return ""
	}
	oldest := ignition.Target{Variant: ignition.OpenShift, Version: ignition.SupportedOpenShift()[0]}
	text := fmt.Sprintf("  no openshiftVersion: written for %s and every later release, from Ignition %s, keepalived %s and HAProxy %s on (what a newer HAProxy has, the agent uses)",
		oldest.Version, ignition.NewEncoder(oldest).IgnitionVersion(), assets.Oldest.Keepalived[0], assets.Oldest.HAProxy)
	if assumed := c.Assumed(); assumed != "" {
		text += "; this cluster needs " + assumed
	}
	return text + ". Give spec.openshiftVersion in vipgen.yaml, or --openshift-version, to have the release checked\n"
}

// election says how nodes elect, whether they start beside the operator's own
// keepalived, and why.
func election(c *render.Cluster) string {
	s := c.Config.Spec
	switch {
	case s.LoadBalancer == v1alpha1.LoadBalancerExternal:
		return "load balancer outside of the cluster: nodes get DNS only"
	case s.LoadBalancer == v1alpha1.LoadBalancerNone && len(s.Groups) > 0:
		return "no VIPs: nodes get DNS only, and the names of API and routes are the control-plane node's own address"
	case s.LoadBalancer == v1alpha1.LoadBalancerNone:
		return "no VIPs: nodes get DNS only, without the names of API and routes"
	case c.Switches():
		return fmt.Sprintf("starts as %s, then switches to %s: OpenShift's own keepalived holds the API VIP on the bootstrap host (loadBalancer.type: UserManaged avoids the switch)",
			settings(*s.VRRP.Start), settings(s.VRRP.Target))
	case c.OwnsBootstrap():
		return fmt.Sprintf("%s from the first packet: no other keepalived runs in this cluster", settings(s.VRRP.Target))
	case s.VRRP.Target == v1alpha1.ClassicSettings(v1alpha1.ModeUnicast):
		return fmt.Sprintf("%s from the first packet, as OpenShift's own keepalived on the bootstrap host", settings(s.VRRP.Target))
	default:
		return fmt.Sprintf("%s from the first packet, which OpenShift's own keepalived on the bootstrap host does not understand: both sides will hold the API VIP until it is gone", settings(s.VRRP.Target))
	}
}

// profileWhy says which profile a cluster has and why; nothing where that is unknown.
func profileWhy(c *render.Cluster) string {
	if c.ProfileWhy == "" {
		return ""
	}
	return fmt.Sprintf("profile %s: %s", c.Config.Spec.VRRP.Target.Profile, c.ProfileWhy)
}

func settings(v v1alpha1.VRRPSettings) string {
	return fmt.Sprintf("%s (VRRPv%d, %d ms, %s)", v.Profile, v.Version, v.AdvertIntervalMS, v.Mode)
}
