package v1alpha1

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
)

type checker struct{ list problem.List }

func (c *checker) add(code problem.Code, field, found, expected string) {
	c.list = append(c.list, problem.Problem{Severity: problem.Error, Code: code, Field: field, Found: found, Expected: expected})
}

// kind checks a field with one valid value.
func (c *checker) kind(field, got, want string) {
	switch got {
	case want:
	case "":
		c.add(problem.MissingField, field, "nothing", want)
	default:
		c.add(problem.WrongKind, field, problem.Quote(got), want)
	}
}

// oneOf checks a value of an enum; empty means the default.
func oneOf[T enum[T]](c *checker, field string, got T) {
	if want := got.Values(); got != "" && !slices.Contains(want, got) {
		c.add(problem.BadValue, field, problem.Quote(string(got)), alternatives(want))
	}
}

// required is oneOf for an enum without a default.
func required[T enum[T]](c *checker, field string, got T) {
	if got == "" {
		c.add(problem.MissingField, field, "nothing", alternatives(got.Values()))
	}
	oneOf(c, field, got)
}

func alternatives[T ~string](want []T) string {
	return strings.Join(lists.Map(want, func(w T) string { return string(w) }), " or ")
}

// releasePattern matches a release with or without its patch level and suffix.
var releasePattern = lazy.Regexp(`^[0-9]+\.[0-9]+(\.[0-9][0-9A-Za-z.+-]*)?$`)

// ValidateKind checks apiVersion and kind alone, for a VIPConfig that is merged with others.
func (v *VIPConfig) ValidateKind() problem.List {
	c := &checker{}
	c.kind("apiVersion", v.APIVersion, APIVersion)
	c.kind("kind", v.Kind, KindVIPConfig)
	return c.list
}

// Validate checks everything that does not need the install-config and returns every problem,
// by field.
func (v *VIPConfig) Validate() problem.List {
	c := &checker{list: v.ValidateKind()}
	s := &v.Spec
	if s.Network != "" && !validWord(s.Network, 63, "_-.") {
		c.add(problem.BadName, "spec.network", problem.Quote(s.Network), "at most 63 letters, digits, hyphens, underscores and periods")
	}
	c.vips("spec.apiVIPs", s.APIVIPs)
	c.vips("spec.ingressVIPs", s.IngressVIPs)
	c.additionalAPI(s.AdditionalAPIVIPs)
	oneOf(c, "spec.loadBalancer.type", s.LoadBalancer.Type)
	oneOf(c, "spec.apiServer.local", s.APIServer.Local)
	if s.APIServer.Local == LocalAPIAllNodes && s.LoadBalancer.Type != "" && s.LoadBalancer.Type != LoadBalancerInCluster {
		c.add(problem.ConflictingFields, "spec.apiServer.local", string(s.APIServer.Local), "loadBalancer.type: InCluster, or no value")
	}
	c.announce(s.Announce, s.announces(), &s.BGP, s.LoadBalancer.Type)
	c.vrrp(&s.VRRP)
	c.ports(s.Ports, s.Ingress, s.RoutedBy() != "")
	c.image("spec.images.agent", s.Images.Agent)
	c.image("spec.images.keepalived", s.Images.Keepalived)
	c.image("spec.images.haproxy", s.Images.HAProxy)
	c.image("spec.images.coredns", s.Images.CoreDNS)
	if s.Images.Release != "" && !releasePattern().MatchString(s.Images.Release) {
		c.add(problem.BadValue, "spec.images.release", problem.Quote(s.Images.Release), "a release of OpenShift such as 4.18 or 4.18.3")
	}
	c.dns(&s.DNS)
	if s.AppsDomain != "" {
		c.domain("spec.appsDomain", s.AppsDomain, s.AppsDomain, "a domain such as apps.example.net")
	}
	c.ingress(s.Ingress)
	c.pools(s.Pools)
	oneOf(c, "spec.monitoring.address", s.Monitoring.Address)
	return c.list
}

// vips checks a list of VIPs: at most one per family.
func (c *checker) vips(field string, vips []netip.Addr) {
	c.addresses(field, vips)
	families := map[bool]int{}
	for i, a := range vips {
		if !a.IsValid() {
			continue
		}
		if _, twice := families[a.Is4()]; twice {
			c.add(problem.BadAddress, fmt.Sprintf("%s[%d]", field, i), a.String(), "at most one IPv4 and one IPv6 address")
		}
		families[a.Is4()] = i
	}
}

func (c *checker) addresses(field string, list []netip.Addr) {
	for i, a := range list {
		if what := UsableAddress(a); what != "" {
			c.add(problem.BadAddress, fmt.Sprintf("%s[%d]", field, i), what, "the unicast address of a host")
		}
	}
}

func (c *checker) vrrp(v *VRRP) {
	oneOf(c, "spec.vrrp.profile", v.Profile)
	oneOf(c, "spec.vrrp.mode", v.Mode)
	c.routerID("spec.vrrp.virtualRouterIDs.api", v.VirtualRouterIDs.API)
	c.routerID("spec.vrrp.virtualRouterIDs.ingress", v.VirtualRouterIDs.Ingress)
	c.routerID("spec.vrrp.virtualRouterIDs.dns", v.VirtualRouterIDs.DNS)
	for i, id := range v.ReservedRouterIDs {
		if id < 1 || id > 255 {
			c.add(problem.BadValue, fmt.Sprintf("spec.vrrp.reservedRouterIDs[%d]", i), fmt.Sprint(id), "1 to 255")
		}
	}
	if v.Profile != ProfileCustom {
		if v.Version != 0 {
			c.add(problem.ConflictingFields, "spec.vrrp.version", fmt.Sprint(v.Version), "no version, or vrrp.profile: custom")
		}
		if v.AdvertInterval != 0 {
			c.add(problem.ConflictingFields, "spec.vrrp.advertInterval", v.AdvertInterval.String(), "no interval, or vrrp.profile: custom")
		}
		return
	}
	if v.AdvertInterval == 0 {
		c.add(problem.MissingField, "spec.vrrp.advertInterval", "nothing", "an interval such as 50ms, for profile custom")
		return
	}
	if why := AdvertInterval(v.Version, time.Duration(v.AdvertInterval)); why != "" {
		c.add(problem.BadTiming, "spec.vrrp.advertInterval", v.AdvertInterval.String(), why)
	}
	if v.Version != 0 && v.Version != 2 && v.Version != 3 {
		c.add(problem.BadValue, "spec.vrrp.version", fmt.Sprint(v.Version), "2 or 3")
	}
}

// AdvertInterval returns what a version of VRRP expects where it cannot carry the interval, or
// "".
func AdvertInterval(version int, d time.Duration) string {
	if version == 2 {
		if d < time.Second || d > 255*time.Second || d%time.Second != 0 {
			return "1s to 255s in whole seconds, all that VRRPv2 can carry"
		}
		return ""
	}
	if d < 10*time.Millisecond || d > 40950*time.Millisecond || d%(10*time.Millisecond) != 0 {
		return "10ms to 40.95s in steps of 10ms, all that VRRPv3 can carry"
	}
	return ""
}

// IPv6Interval returns what is wrong with the advert interval of VRRPv2 if there are IPv6 VIPs
// too, or "": VRRPv3 elects those at the same interval.
func (v VRRPSettings) IPv6Interval(groups []Group) string {
	v6 := func(g Group) bool { return slices.ContainsFunc(g.VIPs, netip.Addr.Is6) }
	if v.Version != 2 || !slices.ContainsFunc(groups, v6) {
		return ""
	}
	if d := Millis(v.AdvertIntervalMS); AdvertInterval(2, d) == "" && AdvertInterval(3, d) != "" {
		return "at most 40s, as IPv6 VIPs are elected by VRRPv3"
	}
	return ""
}

func (c *checker) routerID(field string, id int) {
	if id < 0 || id > 255 {
		c.add(problem.BadValue, field, fmt.Sprint(id), "1 to 255")
	}
}

func (c *checker) port(field string, p int) {
	if p < 0 || p > 65535 {
		c.add(problem.BadValue, field, fmt.Sprint(p), "a port, 1 to 65535")
	}
}

// ports checks ranges, and that no two services of one node share a port, defaults included.
// Ironic is among them: after the bootstrap host it runs on the control plane.
func (c *checker) ports(p Ports, ingress []Ingress, routed bool) {
	taken := map[int]string{22: "ssh", DNSPort: "CoreDNS", HTTPPort: "the router", HTTPSPort: "the router", MDNSPort: "mDNS", ClientsPort: "the agents' lists of clients", 10250: "kubelet"}
	usual := DefaultPorts
	// Ports that the user set come last, so that they are the ones reported.
	for _, chosen := range []bool{false, true} {
		for _, n := range p.list(&usual) {
			field := "spec.ports." + n.name
			if (*n.port != 0) != chosen || !chosen && !routed && n.port == &p.BGPMonitor {
				continue
			}
			port := *n.usual
			if chosen {
				port = *n.port
				c.port(field, port)
			}
			if by, ok := taken[port]; ok {
				c.add(problem.PortTaken, field, fmt.Sprint(port), "a port that is free, this is the one of "+by)
				continue
			}
			taken[port] = "spec.ports." + n.name
		}
	}
	for i, g := range ingress {
		by, ok := taken[g.HealthPort]
		if ok && by != "spec.ports.routerHealth" {
			c.add(problem.PortTaken, fmt.Sprintf("spec.ingress[%d].healthPort", i), fmt.Sprint(g.HealthPort), "a port that is free, this is the one of "+by)
		}
	}
}

// ValidImage reports whether s is a container image reference, such as quay.io/org/name:tag or
// quay.io/org/name@sha256:....
func ValidImage(s string) bool {
	return len(s) <= 512 && reference.ReferenceRegexp.MatchString(s)
}

func (c *checker) image(field, s string) {
	if s != "" && !ValidImage(s) {
		c.add(problem.BadImage, field, problem.Quote(s), "an image such as quay.io/org/name@sha256:...")
	}
}

func (c *checker) dns(d *DNS) {
	c.addresses("spec.dns.upstreams", d.Upstreams)
	if len(d.Upstreams) > 15 {
		c.add(problem.BadValue, "spec.dns.upstreams", fmt.Sprintf("%d addresses", len(d.Upstreams)), "at most 15")
	}
	seen := map[string]bool{}
	for i, r := range d.Records {
		field := fmt.Sprintf("spec.dns.records[%d]", i)
		c.domain(field+".name", strings.TrimPrefix(r.Name, "*."), r.Name, `a name such as registry.example.com or *.apps2.example.com`)
		c.once(seen, field+".name", r.Name, "each name once")
		if len(r.Addresses) == 0 {
			c.add(problem.MissingField, field+".addresses", "nothing", "at least one address")
		}
		c.addresses(field+".addresses", r.Addresses)
	}
}

// domain checks a name of at least two labels.
func (c *checker) domain(field, name, found, expected string) {
	switch {
	case found == "":
		c.add(problem.MissingField, field, "nothing", expected)
	case !ValidName(name) || !strings.Contains(name, "."):
		c.add(problem.BadName, field, problem.Quote(found), expected)
	}
}

func (c *checker) shortLabel(field, name, expected string, most int) {
	c.label(field, name, expected)
	if ValidLabel(name) && len(name) > most {
		c.add(problem.BadName, field, problem.Quote(name), fmt.Sprintf("at most %d characters", most))
	}
}

// once reports a name that was seen before.
func (c *checker) once(seen map[string]bool, field, name, expected string) {
	if seen[name] && name != "" {
		c.add(problem.ConflictingFields, field, problem.Quote(name), expected)
	}
	seen[name] = true
}

// maxAPIName leaves room for "api-" in a label.
const maxAPIName = 63 - len("api-")

func (c *checker) additionalAPI(list []AdditionalAPI) {
	seen := map[string]bool{}
	for i, g := range list {
		field := fmt.Sprintf("spec.additionalAPIVIPs[%d]", i)
		c.shortLabel(field+".name", g.Name, "a name such as mgmt", maxAPIName)
		c.once(seen, field+".name", g.Name, "each set of VIPs once")
		if len(g.VIPs) == 0 {
			c.add(problem.MissingField, field+".vips", "nothing", "one VIP per address family")
		}
		c.vips(field+".vips", g.VIPs)
		for j, n := range g.Names {
			c.domain(fmt.Sprintf("%s.names[%d]", field, j), n, n, "a name such as api-mgmt.example.com")
		}
		c.routerID(field+".virtualRouterID", g.VirtualRouterID)
		c.noRouterID(field, g.Announce, g.VirtualRouterID)
	}
}

// noRouterID reports a virtual router ID of VIPs that no keepalived has.
func (c *checker) noRouterID(field string, a Announce, id int) {
	if a.Routed() && id != 0 {
		c.add(problem.ConflictingFields, field+".virtualRouterID", fmt.Sprint(id), "none with announce: "+string(a)+", which elects no holder")
	}
}

// maxIngressName leaves room for the names that OpenShift derives from an IngressController's,
// the longest of which is the Service "router-internal-<name>", a label.
const maxIngressName = 63 - len("router-internal-")

func (c *checker) ingress(list []Ingress) {
	seen := map[string]bool{}
	for i, g := range list {
		field := fmt.Sprintf("spec.ingress[%d]", i)
		c.shortLabel(field+".name", g.Name, "the name of an IngressController", maxIngressName)
		c.once(seen, field+".name", g.Name, "each ingress controller once")
		if g.Name == DefaultIngress && g.VirtualRouterID != 0 {
			c.add(problem.ConflictingFields, field+".virtualRouterID", fmt.Sprint(g.VirtualRouterID), "none: that of the default ingress controller is vrrp.virtualRouterIDs.ingress")
		}
		if g.Controller != "" {
			c.shortLabel(field+".controller", g.Controller, "the name of an IngressController", maxIngressName)
			if g.Name == DefaultIngress && g.Controller != g.Name {
				c.add(problem.ConflictingFields, field+".controller", problem.Quote(g.Controller), "none: the default VIPs are those of the default ingress controller")
			}
		}
		switch {
		case g.Name == DefaultIngress && len(g.VIPs) > 0:
			c.add(problem.ConflictingFields, field+".vips", "VIPs", "none: those of the default ingress controller are ingressVIPs")
		case g.Name != DefaultIngress && len(g.VIPs) == 0:
			c.add(problem.MissingField, field+".vips", "nothing", "one VIP per address family")
		}
		c.vips(field+".vips", g.VIPs)
		if g.Name != DefaultIngress && g.Controller == "" && len(g.Domains) == 0 {
			c.add(problem.MissingField, field+".domains", "nothing", "the domain of the ingress controller's routes")
		}
		for j, d := range g.Domains {
			c.domain(fmt.Sprintf("%s.domains[%d]", field, j), d, d, "a domain such as apps2.example.com")
		}
		c.selector(field+".nodeSelector", g.NodeSelector)
		c.port(field+".healthPort", g.HealthPort)
		c.routerID(field+".virtualRouterID", g.VirtualRouterID)
		if g.Name != DefaultIngress {
			c.noRouterID(field, g.Announce, g.VirtualRouterID)
		}
	}
}

func (c *checker) selector(field string, labels map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		at := field + "[" + problem.Quote(k) + "]"
		if !ValidLabelKey(k) {
			c.add(problem.BadName, at, problem.Quote(k), "the key of a label")
		}
		if v := labels[k]; !ValidLabelValue(v) {
			c.add(problem.BadValue, at, problem.Quote(v), "the value of a label")
		}
	}
}

func (c *checker) label(field, s, expected string) {
	switch {
	case s == "":
		c.add(problem.MissingField, field, "nothing", expected)
	case !ValidLabel(s):
		c.add(problem.BadName, field, problem.Quote(s), expected+": lower-case letters, digits and hyphens, at most 63")
	}
}

func (c *checker) pools(pools []Pool) {
	seen := map[string]bool{RoleMaster: true, RoleWorker: true, RoleArbiter: true, RoleBootstrap: true, "control-plane": true}
	for i, p := range pools {
		field := fmt.Sprintf("spec.pools[%d].name", i)
		c.label(field, p.Name, "the name of a pool")
		c.once(seen, field, p.Name, "a name of its own, besides master, worker, arbiter and bootstrap")
	}
}
