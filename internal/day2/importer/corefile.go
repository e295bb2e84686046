package importer

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/blocks"
)

// readCorefile reads facts that no object of the cluster has: names with addresses that are not the
// operator's, and from a node template upstream servers that are the same on all nodes.
func (i *importer) readCorefile(name string, data []byte) {
	i.found = true
	masked, _, err := blocks.Mask(data)
	var servers []blocks.Statement
	if err == nil {
		servers, err = blocks.Parse(masked, "#")
	}
	if err != nil {
		p := problem.Problem{File: name, Line: 1, Code: problem.Syntax, Found: err.Error(), Expected: "a Corefile whose blocks and quotes are closed"}
		if at := (*blocks.Error)(nil); errors.As(err, &at) {
			p.Line = at.Line
		}
		i.add(p)
		return
	}
	// CoreDNS' own plugin template has actions in its answers.
	template := slices.ContainsFunc([]string{"{{range", "{{- range", ".DNSUpstreams", ".Cluster"}, func(s string) bool { return bytes.Contains(data, []byte(s)) })
	for _, s := range servers {
		if !s.Open || !slices.Contains([]string{".", ".:53", "dns://.:53"}, s.Word(0)) {
			continue // not for every name
		}
		for _, p := range s.Body {
			switch {
			case p.Word(0) == "hosts":
				i.readHosts(name, p)
			case p.Word(0) == "forward" && p.Word(1) == "." && template:
				if list := upstreams(p.Words[2:]); len(list) > 0 {
					i.upstreams.add(list, Place{name, p.Line}, byConf)
				}
			}
		}
	}
}

// maxUpstreams is CoreDNS' limit.
const maxUpstreams = 15

// upstreams returns the servers that are addresses.
func upstreams(words []string) (list []netip.Addr) {
	for _, w := range words {
		if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(w, "dns://"), ":53")); err == nil && v1alpha1.UsableAddress(a) == "" && len(list) < maxUpstreams {
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

// isNode reports whether the operator wrote the line: a node with its name, and that name
// within the cluster's domain.
func (h hostLine) isNode(domain string) bool {
	return slices.ContainsFunc(h.names, func(n string) bool { return slices.Contains(h.names, n+"."+domain) })
}

// readHosts reads names with their addresses. Nodes are told apart once the domain is known.
func (i *importer) readHosts(file string, s blocks.Statement) {
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
		i.hostLines.add(line, Place{file, l.Line}, byConf)
	}
}
