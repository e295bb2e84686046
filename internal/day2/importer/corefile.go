package importer

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/blocks"
	"github.com/vipgen/vipgen/internal/lazy"
)

// corefile is what a Corefile, or a node template of one, says.
type corefile struct {
	file     string
	template bool
	servers  []blocks.Statement
	// domain is that of the cluster, "" if it does not say.
	domain     string
	domainLine int
	api        []netip.Addr
	ingress    []netip.Addr
	apiLine    int
	appsLine   int
	health     int
	healthLine int
	// upstreams are those that stand there as addresses.
	upstreams     []netip.Addr
	upstreamsLine int
	hostLines     []claim[hostLine]
	// foreign are statements that are none of the operator's.
	foreign []blocks.Statement
}

func (c *corefile) at(line int) Place { return Place{c.file, line} }

// parseCorefile reads a Corefile, rendered or a template.
func parseCorefile(file string, text []byte) (*corefile, problem.List) {
	c := &corefile{file: file}
	r := &confReader{file: file}
	// CoreDNS itself has actions in what its plugin template answers.
	c.template = strings.Contains(string(text), "{{range") || strings.Contains(string(text), "{{- range") || strings.Contains(string(text), ".DNSUpstreams") || strings.Contains(string(text), ".Cluster")
	masked, _, err := blocks.Mask(text)
	if err == nil {
		c.servers, err = blocks.Parse(masked, "#")
	}
	if err != nil {
		r.refuse(err, "a Corefile")
		return c, r.list
	}
	for _, s := range c.servers {
		if !s.Open || !isRoot(s.Word(0)) {
			c.foreign = append(c.foreign, s)
			continue
		}
		for _, p := range s.Body {
			c.plugin(r, p)
		}
	}
	return c, r.list
}

// isRoot reports whether a server block is for every name.
func isRoot(zone string) bool { return zone == "." || zone == ".:53" || zone == "dns://.:53" }

func (c *corefile) plugin(r *confReader, s blocks.Statement) {
	switch s.Word(0) {
	case "errors", "log", "cache", "reload", "mdns", "bufsize", "loadbalance", "ready":
	case "health":
		if len(s.Words) > 1 {
			c.health, c.healthLine = r.port(s.Line, "health", s.Word(1)), s.Line
		}
	case "forward":
		c.forward(s)
	case "template":
		c.answer(s)
	case "hosts":
		c.hosts(s)
	default:
		c.foreign = append(c.foreign, s)
	}
}

// maxUpstreams is how many CoreDNS takes.
const maxUpstreams = 15

func (c *corefile) forward(s blocks.Statement) {
	if s.Word(1) != "." {
		c.foreign = append(c.foreign, s)
		return
	}
	var list []netip.Addr
	for _, w := range s.Words[2:] {
		if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(w, "dns://"), ":53")); err == nil && v1alpha1.UsableAddress(a) == "" && len(list) < maxUpstreams {
			list = append(list, a)
		}
	}
	if len(list) > 0 {
		c.upstreams, c.upstreamsLine = list, s.Line
	}
}

var lastWord = lazy.Regexp(`\S+$`)

// answer reads "template IN A <domain>" whose match is that of the API or of the
// routers.
func (c *corefile) answer(s blocks.Statement) {
	var match string
	var found []netip.Addr
	for _, l := range s.Body {
		switch l.Word(0) {
		case "match":
			match = strings.Join(l.Words[1:], " ")
		case "answer":
			if a, err := netip.ParseAddr(lastWord().FindString(strings.Join(l.Words[1:], " "))); err == nil {
				found = append(found, a)
			}
		}
	}
	domain := strings.TrimSuffix(s.Word(3), ".")
	api, apps := strings.Contains(match, "api"), strings.Contains(match, "apps")
	switch {
	case !api && !apps, !blocks.HasHole(domain) && !v1alpha1.ValidName(domain):
		c.foreign = append(c.foreign, s)
		return
	case !blocks.HasHole(domain) && c.domain == "":
		c.domain, c.domainLine = domain, s.Line
	}
	switch {
	case apps:
		c.ingress, c.appsLine = union(c.ingress, found), s.Line
	default:
		c.api, c.apiLine = union(c.api, found), s.Line
	}
}

func union(list, more []netip.Addr) []netip.Addr {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// hostLine is an address with its names, as in /etc/hosts.
type hostLine struct {
	addr  netip.Addr
	names []string
}

// ofNode reports whether the operator wrote the line: it gives a node its name, and
// that name within the cluster's domain.
func (h hostLine) ofNode(domain string) bool {
	return slices.ContainsFunc(h.names, func(n string) bool { return slices.Contains(h.names, n+"."+domain) })
}

// hosts reads names with their addresses. Which of them are nodes is decided when
// the domain is known.
func (c *corefile) hosts(s blocks.Statement) {
	for _, l := range s.Body {
		a, err := netip.ParseAddr(l.Word(0))
		if err != nil {
			continue // fallthrough, ttl and so on
		}
		line := hostLine{addr: a}
		for _, name := range l.Words[1:] {
			if name = strings.TrimSuffix(strings.ToLower(name), "."); v1alpha1.ValidName(name) {
				line.names = append(line.names, name)
			}
		}
		c.hostLines = append(c.hostLines, claim[hostLine]{line, c.at(l.Line), byConf})
	}
}

func (c *corefile) claim(e *evidence) {
	if c.domain != "" {
		e.domain.add(c.domain, c.at(c.domainLine), byConf)
	}
	if len(c.api) > 0 {
		e.api.add(c.api, c.at(c.apiLine), byConf)
	}
	if len(c.ingress) > 0 {
		e.ingress.add(c.ingress, c.at(c.appsLine), byConf)
	}
	if c.health != 0 {
		claimed(e.ports, "corednsHealth", c.health, c.at(c.healthLine), byConf)
	}
	if c.template && len(c.upstreams) > 0 {
		e.upstreams.add(c.upstreams, c.at(c.upstreamsLine), byConf)
	}
	e.hostLines = append(e.hostLines, c.hostLines...)
}
