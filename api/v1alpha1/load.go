package v1alpha1

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
)

// LoadClusterConfig reads cluster.yaml and validates it: a node uses a file that is valid as a
// whole or keeps its last one. file names it in errors.
//
// Unknown fields are of a later vipgen and are ignored: during an upgrade or a downgrade,
// agents read files that another version has rendered. Fields that older agents must not ignore
// take another apiVersion.
func LoadClusterConfig(file string, data []byte) (*ClusterConfig, error) {
	c, _, err := decodeClusterConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %.500v", file, err) // it may quote the whole file
	}
	list := c.Validate()
	for i := range list {
		list[i].File = file
	}
	if err := list.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// UnknownFields returns the paths of the fields that LoadClusterConfig ignores.
func UnknownFields(data []byte) (paths []string) {
	_, unknown, _ := decodeClusterConfig(data)
	for _, err := range unknown {
		if field, ok := errors.AsType[json.FieldError](err); ok {
			paths = append(paths, field.FieldPath())
		}
	}
	return paths
}

// decodeClusterConfig decodes the known fields, and lists the others. A duplicate key is an
// error.
func decodeClusterConfig(data []byte) (c *ClusterConfig, unknown []error, err error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, nil, err
	}
	c = &ClusterConfig{}
	unknown, err = json.UnmarshalStrict(text, c, json.DisallowUnknownFields)
	return c, unknown, err
}

// Marshal writes a file for LoadClusterConfig. The bytes depend on the value alone.
func (c *ClusterConfig) Marshal() ([]byte, error) { return yaml.Marshal(c) }

// Validate checks that everything that reaches a daemon's configuration is harmless there,
// regardless of its author, and that its parts are consistent.
func (c *ClusterConfig) Validate() problem.List {
	k := &checker{}
	k.kind("apiVersion", c.APIVersion, APIVersion)
	k.kind("kind", c.Kind, KindClusterConfig)
	s := &c.Spec
	k.name("metadata.name", c.Metadata.Name)
	k.name("spec.domain", s.Domain)
	k.name("spec.platform", s.Platform)
	required(k, "spec.topology", s.Topology)
	if s.ControlPlane.Replicas < 1 {
		k.add(problem.BadValue, "spec.controlPlane.replicas", fmt.Sprint(s.ControlPlane.Replicas), "at least 1")
	}
	required(k, "spec.loadBalancer", s.LoadBalancer)
	oneOf(k, "spec.apiServer.local", s.APIServer.Local)
	var own []announce
	for i, g := range s.Groups {
		own = append(own, announce{fmt.Sprintf("spec.groups[%d].announce", i), g.Announce})
	}
	k.announce(s.Announce, own, &s.BGP, s.LoadBalancer)
	if s.ByVRRP() {
		k.settings("spec.vrrp.target", s.VRRP.Target)
		if s.VRRP.Start != nil {
			k.settings("spec.vrrp.start", *s.VRRP.Start)
		}
	}
	for i, p := range s.MachineNetworks {
		if !p.IsValid() {
			k.add(problem.BadNetwork, fmt.Sprintf("spec.machineNetworks[%d]", i), "no network", "a network, such as 192.0.2.0/24")
		}
	}
	for i := range s.Groups {
		k.group(fmt.Sprintf("spec.groups[%d]", i), &s.Groups[i], s.LoadBalancer)
		if s.LoadBalancer == LoadBalancerInCluster && s.elected(s.Groups[i]) {
			k.instance(fmt.Sprintf("spec.groups[%d]", i), &s.Groups[i])
		}
	}
	if why := s.VRRP.Target.IPv6Interval(s.Elected().Groups); why != "" {
		k.add(problem.BadTiming, "spec.vrrp.target.advertIntervalMS", Millis(s.VRRP.Target.AdvertIntervalMS).String(), why)
	}
	k.groups(s.Groups)
	k.peers("spec.peers", s.Peers)
	oneOf(k, "spec.metrics", s.Metrics)
	k.dns(&DNS{Upstreams: s.DNS.Upstreams, Records: s.DNS.Records})
	for _, p := range s.Ports.list(&DefaultPorts) {
		if (*p.port < 1 || *p.port > 65535) && (*p.port != 0 || p.port != &s.Ports.BGPMonitor) {
			k.add(problem.BadValue, "spec.ports."+p.name, fmt.Sprint(*p.port), "a port, 1 to 65535")
		}
	}
	return k.list
}

func (k *checker) name(field, s string) {
	switch {
	case s == "":
		k.add(problem.MissingField, field, "nothing", "a DNS name")
	case !ValidName(s):
		k.add(problem.BadName, field, problem.Quote(s), "a DNS name of lower-case letters, digits, hyphens and periods")
	}
}

func (k *checker) settings(field string, v VRRPSettings) {
	required(k, field+".profile", v.Profile)
	required(k, field+".mode", v.Mode)
	if v.Version != 2 && v.Version != 3 {
		k.add(problem.BadValue, field+".version", fmt.Sprint(v.Version), "2 or 3")
	}
	if why := AdvertInterval(v.Version, Millis(v.AdvertIntervalMS)); why != "" {
		k.add(problem.BadTiming, field+".advertIntervalMS", Millis(v.AdvertIntervalMS).String(), why)
	}
}

// groups checks what must be unique across groups.
func (k *checker) groups(groups []Group) {
	names, ids := map[string]bool{}, map[int]string{}
	for i, g := range groups {
		field := fmt.Sprintf("spec.groups[%d]", i)
		if names[g.Name] {
			k.add(problem.ConflictingFields, field+".name", problem.Quote(g.Name), "each group once")
		}
		names[g.Name] = true
		if by, taken := ids[g.VirtualRouterID]; taken && g.VirtualRouterID != 0 {
			k.add(problem.RouterIDTaken, field+".virtualRouterID", fmt.Sprint(g.VirtualRouterID), "an ID of its own, this is the one of "+by)
		}
		ids[g.VirtualRouterID] = g.Name
	}
}

// maxInstance has room for the names of a cluster and an ingress controller together, and fits
// keepalived's lines of 1,024 bytes.
const maxInstance = 512

func (k *checker) group(field string, g *Group, lb LoadBalancerType) {
	k.label(field+".name", g.Name, "the name of a group")
	required(k, field+".role", g.Role)
	if len(g.VIPs) == 0 && lb != LoadBalancerNone {
		k.add(problem.MissingField, field+".vips", "nothing", "one VIP per address family")
	}
	k.vips(field+".vips", g.VIPs)
	for i, n := range g.Names {
		k.name(fmt.Sprintf("%s.names[%d]", field, i), n)
	}
	for i, d := range g.Domains {
		k.name(fmt.Sprintf("%s.domains[%d]", field, i), d)
	}
	k.selector(field+".nodeSelector", g.NodeSelector)
	if g.Controller != "" && !ValidLabel(g.Controller) {
		k.add(problem.BadName, field+".controller", problem.Quote(g.Controller), "the name of an IngressController")
	}
	if g.HealthPort < 0 || g.HealthPort > 65535 {
		k.add(problem.BadValue, field+".healthPort", fmt.Sprint(g.HealthPort), "a port, 1 to 65535")
	}
}

// instance checks the VRRP instances of a group.
func (k *checker) instance(field string, g *Group) {
	if !validWord(g.Instance, maxInstance, "_-.") {
		k.add(problem.BadName, field+".instance", problem.Quote(g.Instance), "letters, digits, hyphens, underscores and periods")
	}
	if g.Password != "" && !validWord(g.Password, 8, "_-.") {
		k.add(problem.BadValue, field+".password", "another text", "at most 8 letters, digits, hyphens, underscores and periods")
	}
	if g.VirtualRouterID < 1 || g.VirtualRouterID > 255 {
		k.add(problem.BadValue, field+".virtualRouterID", fmt.Sprint(g.VirtualRouterID), "1 to 255")
	}
}

// peers checks a list of nodes. Their names are server names in daemons' configurations, so
// they must be unique.
func (k *checker) peers(at string, peers []Peer) {
	seen := map[string]bool{}
	for i, p := range peers {
		field := fmt.Sprintf("%s[%d]", at, i)
		k.peer(field+".", &p)
		k.once(seen, field+".name", p.Name, "each node once")
	}
}

func (k *checker) peer(at string, p *Peer) {
	k.name(at+"name", p.Name)
	k.name(at+"role", p.Role)
	k.addresses(at+"addresses", p.Addresses)
	k.addresses(at+"elsewhere", p.Elsewhere)
}

// Validate checks that a peer is harmless in a daemon's configuration, and returns
// every problem.
func (p *Peer) Validate() problem.List {
	k := &checker{}
	k.peer("", p)
	return k.list
}

// ValidInterface reports whether s is a valid name of a network interface: at most 15 bytes, as
// in Linux (IFNAMSIZ).
func ValidInterface(s string) bool { return validWord(s, 15, "_-.:") }

// validWord reports whether s consists of letters, digits and some marks.
func validWord(s string, most int, marks string) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && !strings.ContainsRune(marks, rune(s[i])) {
			return false
		}
	}
	return true
}

// Validate checks that facts of a node are harmless in a daemon's
// configuration, and returns every problem.
func (n *Node) Validate() problem.List {
	k := &checker{}
	k.name("name", n.Name)
	k.name("role", n.Role)
	for i, iface := range n.Interfaces {
		field := fmt.Sprintf("interfaces[%d]", i)
		if !ValidInterface(iface.Name) {
			k.add(problem.BadName, field+".name", problem.Quote(iface.Name), "the name of an interface, at most 15 letters, digits and marks")
		}
		for j, a := range iface.Addresses {
			if what := UsableAddress(a.Addr()); what != "" {
				k.add(problem.BadAddress, fmt.Sprintf("%s.addresses[%d]", field, j), what, "the unicast address of a host")
			}
		}
	}
	k.peers("peers", n.Peers)
	for i, a := range n.Upstreams {
		if !a.IsValid() || a.Zone() != "" && !ValidInterface(a.Zone()) {
			k.add(problem.BadAddress, fmt.Sprintf("upstreams[%d]", i), problem.Quote(a.String()), "the address of a DNS server")
		}
	}
	if n.VRRP != nil {
		k.settings("vrrp", *n.VRRP)
	}
	if n.HAProxy != "" && !haproxyVersion().MatchString(n.HAProxy) {
		k.add(problem.BadValue, "haproxy", problem.Quote(n.HAProxy), `a version of HAProxy, such as "2.6"`)
	}
	return k.list
}

var haproxyVersion = lazy.Regexp(`^\d+\.\d+(\.\d+)?$`)
